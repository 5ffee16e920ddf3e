"""`FileView`: a trace or a saved conversation that is looked at, and read again when it was written anew."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmsp_nb.files import load
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.turns import Turn

from .desk import Desk
from .rows import safe
from .sanitize import single_line

__all__ = ["FileView", "every"]

EVERY = 0.5
"""Seconds between two looks at a file."""


class FileView:
    """The desk of a file. Raises what `load` does.

    Args:
        path: A trace or a saved conversation.
        send: Sends a message to the page.
        options: For the `Desk`.
    """

    def __init__(self, path: Path, send: Callable[[dict[str, Any]], None], **options: Any) -> None:
        self._path = path
        self._send = send
        self._state = _state(path)
        self.desk = Desk(load(path), send, writable=False, **options)

    def refresh(self) -> None:
        """Tell the page what has come to the file since, if anything has."""
        state = _state(self._path)
        if state is None or state == self._state:  # nothing new, or it is gone: what was read stays
            return
        self._state = state
        try:
            fresh = load(self._path)
        except (OSError, MMSPError) as error:
            self._send({"op": "note", "error": True, "text": single_line(safe(str(error)), 300)})
            return
        shown = self.desk.conversation
        before = {turn.id: turn for turns in shown.branches.values() for turn in turns}
        branches = {
            name: [_known(before.get(turn.id), turn) for turn in turns] for name, turns in fresh.branches.items()
        }
        shown._branches, shown.branch, shown.client = branches, fresh.branch, fresh.client
        shown.turns = branches[fresh.branch]
        shown._tell(None, None)

    def close(self) -> None:
        """Follow it no longer."""
        self.desk.close()


def every(owner: Any, look: Callable[[Any], None], seconds: float | None = None) -> Callable[[], None]:
    """Call ``look(owner)`` again and again on a thread, until ``owner`` is gone or what is returned is called."""
    over, mine = threading.Event(), weakref.ref(owner)

    def run() -> None:
        while not over.wait(EVERY if seconds is None else seconds) and (owner := mine()) is not None:
            look(owner)
            del owner

    threading.Thread(target=run, name="mmsp_nb file view", daemon=True).start()
    return over.set


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _known(old: Turn | None, new: Turn) -> Turn:
    """The turn as it was, where it is as it was: its rows need not be made again then."""
    same = old is not None and old.messages == new.messages and old.hidden == new.hidden and old.usage == new.usage
    return old if same and old is not None else new
