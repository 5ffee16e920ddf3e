"""Keeps keys off the screen: values that are known to be keys, and text that has the shape of one.

Everything drawn into a cell, printed, or raised out of a cell passes through `mask`. What is already
written into a notebook cannot be called back, so a key that is still being streamed is hidden as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from mmsp_nb import masking
from mmsp_nb.masking import HALF_KEY, MASK, SHORTEST_KEY, environment_secrets, mask_keys

__all__ = ["Secrets", "mask", "mask_exception", "remember"]


class Secrets:
    """The values that must not be shown. ``environ`` is looked at anew each time it has changed."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._told: set[str] = set()
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def remember(self, *values: str | None) -> None:
        """Hide these values too, for instance a key that was passed to a client."""
        self._told.update(value for value in values if value and len(value) >= SHORTEST_KEY)

    def values(self) -> frozenset[str]:
        """All known values."""
        return frozenset(environment_secrets(self._environ) | self._told)

    def mask(self, text: str, *, running: bool = False) -> str:
        """``text`` with every key replaced by ``***``; with ``running``, the beginning of one at its end as well."""
        known = self.values()
        if known != self._known:
            self._known = known
            longest_first = sorted(known, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first))) if known else None
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        text = mask_keys(text)
        return self._mask_end(text, known) if running else text

    def _mask_end(self, text: str, known: Iterable[str]) -> str:
        for value in known:
            longest = min(len(value) - 1, len(text))
            for length in range(longest, 3, -1):
                if text.endswith(value[:length]):
                    return text[:-length] + MASK
        half = HALF_KEY.search(text[-200:])
        return text[: len(text) - len(half.group())] + MASK if half else text


_secrets = Secrets()


def mask(text: str, *, running: bool = False) -> str:
    """``text`` without keys: those of the environment, those remembered, and what looks like one."""
    return _secrets.mask(text, running=running)


def remember(*values: str | None) -> None:
    """Hide these values from now on, from models as well."""
    _secrets.remember(*values)
    masking.remember(*values)


def mask_exception(error: BaseException) -> None:
    """Take keys out of the error's arguments, since the kernel stores ``str(error)`` in the notebook."""
    masked = tuple(mask(arg) if isinstance(arg, str) else arg for arg in error.args)
    if masked != error.args:
        error.args = masked
    message = getattr(error, "message", None)
    if isinstance(message, str) and mask(message) != message:
        error.message = mask(message)  # type: ignore[attr-defined]
