"""`typing.TypedDict` made anew for pydantic, which before Python 3.12 takes only those of `typing_extensions`."""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from typing import Any

import typing_extensions

__all__ = ["modern"]

_MARKS: Any = (typing_extensions.Required, typing_extensions.NotRequired)


def modern(annotation: Any, _known: dict[Any, Any] | None = None) -> Any:
    """``annotation`` with every `typing.TypedDict` in it made anew; itself when there is none."""
    if sys.version_info >= (3, 12):
        return annotation
    known = {} if _known is None else _known
    if isinstance(annotation, type) and typing.is_typeddict(annotation):
        return _rebuilt(annotation, known)
    parts = typing.get_args(annotation)
    if not parts or typing.get_origin(annotation) is typing.Literal:
        return annotation
    made = tuple(modern(part, known) if not isinstance(part, list) else part for part in parts)
    if all(new is old for new, old in zip(made, parts, strict=True)):
        return annotation
    if isinstance(annotation, types.UnionType):
        return functools.reduce(operator.or_, made)
    if typing.get_origin(annotation) is typing.Annotated:
        return typing.Annotated[(made[0], *annotation.__metadata__)]
    return annotation.copy_with(made) if hasattr(annotation, "copy_with") else typing.get_origin(annotation)[made]


def _rebuilt(kind: Any, known: dict[Any, Any]) -> Any:
    if kind in known:
        return known[kind]
    known[kind] = kind  # one that contains itself stays as it is inside
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    fields = {}
    for name, hint in hints.items():
        # the marks count first: with postponed annotations __required_keys__ does not know them
        mark: Any = typing.get_origin(hint)
        if mark in _MARKS:
            hint = typing.get_args(hint)[0]
        else:
            mark = _MARKS[0] if name in kind.__required_keys__ else _MARKS[1]
        fields[name] = mark[modern(hint, known)]
    known[kind] = typing_extensions.TypedDict(kind.__name__, fields)  # type: ignore[operator]
    known[kind].__doc__ = kind.__doc__
    return known[kind]
