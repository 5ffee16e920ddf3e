"""The progress bar of a run: rows, failures, cost so far and what it will come to, what is waited for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmsp_nb.mapping.running import Run

__all__ = ["Progress", "somebody_watches"]

_OFF = {"0", "false", "no", "off"}


class Progress:
    """A bar of tqdm, in a notebook or at a terminal; nothing when nobody watches.

    Args:
        run: What is followed.
        wanted: True, False, or None for when somebody watches.
    """

    def __init__(self, run: Run, wanted: bool | None) -> None:
        self._run = run
        self._wanted = somebody_watches() if wanted is None else wanted
        self._bar: Any = None
        self._said = ""

    def __enter__(self) -> Progress:
        if self._wanted:
            from tqdm.auto import tqdm

            run = self._run
            self._bar = tqdm(total=run.total, initial=run.answered + run.failed, unit="row", dynamic_ncols=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self.update()
            self._bar.close()

    def update(self) -> None:
        """Show where the run is. On the thread that shows it."""
        bar, run = self._bar, self._run
        if bar is None:
            return
        said = run.status()
        if said != self._said:
            self._said = said
            bar.set_postfix_str(said, refresh=False)
        moved = run.answered + run.failed - bar.n
        bar.update(moved) if moved else bar.refresh()


def somebody_watches(environ: Mapping[str, str] | None = None) -> bool:
    """Whether there is a person at a terminal or a notebook: not under pytest, nor where ``MMSP_NB_LIVE`` is off."""
    environ = os.environ if environ is None else environ
    wanted = environ.get("MMSP_NB_LIVE", "").strip().lower()
    if wanted:
        return wanted not in _OFF
    if "PYTEST_CURRENT_TEST" in environ or sys.stderr is None:
        return False
    if type(sys.stderr).__module__.partition(".")[0] == "ipykernel":
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # replaced, or closed
        return False
