"""The wording that error messages share: near names, and values short enough to show."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = ["did_you_mean", "nearest", "shown"]


def nearest(word: Any, names: Iterable[str]) -> str | None:
    """The name that ``word`` was probably meant to be, without regard to case."""
    legal = {name.lower(): name for name in names}
    near = get_close_matches(str(word).strip().lower(), legal, 1, 0.55)
    return legal[near[0]] if near else None


def did_you_mean(word: Any, names: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest name, or nothing when none is near."""
    near = nearest(word, names)
    return f"; did you mean {near!r}?" if near else ""


def shown(value: Any) -> str:
    """``value`` for an error message: short ones as they are, others by their type."""
    if isinstance(value, str):
        value = str(value)
        return repr(value) if len(value) <= 40 else f"a string of {len(value)} characters"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)[:40]
    if callable(value):
        return f"the function {value.__name__!r}" if hasattr(value, "__name__") else "a callable"
    name = type(value).__name__
    if name in ("list", "tuple", "dict") and not value:
        return f"an empty {name}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
