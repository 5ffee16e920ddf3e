"""Deep copies of items and messages, at a fraction of the cost of `copy.deepcopy`.

Items and messages are trees of dicts and lists with immutable leaves; only an object of another type
(a user's own, in an extra key) is left to `copy.deepcopy`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["copy_item", "copy_message", "copy_messages"]

T = TypeVar("T")

_LEAVES = frozenset({str, int, float, bool, bytes, type(None)})


def copy_item(item: T) -> T:
    """A deep copy of an item, or of any JSON-like value with bytes in it."""
    return _copy(item)


def copy_message(message: T) -> T:
    """A deep copy of a message."""
    return _copy(message)


def copy_messages(messages: Iterable[T]) -> list[T]:
    """Deep copies of ``messages``, in order."""
    return [_copy(message) for message in messages]


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is dict:
        return {key: inner if type(inner) in _LEAVES else _copy(inner) for key, inner in value.items()}
    if kind is list:
        return [inner if type(inner) in _LEAVES else _copy(inner) for inner in value]
    return copy.deepcopy(value)
