"""New ids for tool calls, where a vendor does not take the ones they have."""

from __future__ import annotations

import string
from collections.abc import Iterable

__all__ = ["NewIds"]


class NewIds:
    """Original id -> an id that the target takes; the same ones for the same calls in the same order.

    Args:
        characters: all that an id may have; None for any.
        length: how many of them at most.
        unique: each call gets an id of its own, although originals repeat.
        taken: ids that stay as they are, and that no other call may get.
        barred: ids that no call may get.
    """

    def __init__(
        self,
        characters: str | None,
        length: int | None,
        unique: bool,
        taken: Iterable[str] = (),
        barred: Iterable[str] = (),
    ) -> None:
        self.originals: dict[str, str] = {}
        """New id -> original, where they differ."""
        self._characters = characters
        self._length = length
        self._unique = unique
        self._known = {call_id: call_id for call_id in taken}
        self._used = {*self._known, *barred}
        self._counts: dict[str, int] = {}

    def __call__(self, original: str) -> str:
        """The id of the next call."""
        if original in self._known and not self._unique:
            return self._known[original]
        characters = self._characters
        filler = "_" if characters is None or "_" in characters else characters[0]
        base = "".join(c if characters is None or c in characters else filler for c in original) or filler
        new, count = base[: self._length], self._counts.get(base, 1)
        while new in self._used:
            count += 1
            suffix = filler + _numeral(count, characters)
            new = base[: None if self._length is None else self._length - len(suffix)] + suffix
        self._used.add(new)
        self._known[original] = new
        self._counts[base] = count
        if new != original:
            self.originals[new] = original
        return new


def _numeral(number: int, characters: str | None) -> str:
    """``number`` in digits, or in other characters where there are no digits."""
    symbols = string.digits if characters is None or set(string.digits) <= set(characters) else characters
    text = ""
    while number:
        number, rest = divmod(number, len(symbols))
        text = symbols[rest] + text
    return text
