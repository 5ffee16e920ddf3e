"""A typed answer as its fields, also while its JSON is still being written: names, values so far, kinds.

Pure: JSON text in, safe HTML out. What is large or deep is bounded; the text keeps all of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmsp_nb.blocks import parse_json

from .render import QUIET
from .sanitize import clean, escape, single_line

__all__ = ["fields_html"]

MAX_TEXT = 2_000
MAX_ITEMS = 50
MAX_DEPTH = 4
MAX_PARTIAL = 200_000
"""Characters of a string, items of a list or object, levels, and characters of running JSON that are drawn."""

_HALF_NUMBER = re.compile(r"(?<=[:,\[\s])-?[0-9][0-9.eE+-]*\Z")
"""What may still be the beginning of another number: it would come, go and come again."""

_CELL = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;background:none;border:0"
_TABLE = "border-collapse:collapse;margin:.2em 0;border:0;font-size:inherit;display:inline-table;vertical-align:top"


def fields_html(text: str, *, running: bool = False) -> str | None:
    """The fields of the JSON ``text``; None when there is nothing to show yet, or it is no JSON.

    With ``running`` the text may end anywhere.
    """
    try:
        value = _partial(text) if running else parse_json(text)
    except ValueError:
        return None
    if isinstance(value, dict) and list(value) == ["value"]:
        value = value["value"]  # a type that is no object is asked for in a field of this name
    if value is None or value == {}:
        return None
    return _value(value, 0)


def _partial(text: str) -> Any:
    from pydantic_core import from_json

    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0 or len(text) > MAX_PARTIAL:
        return None
    written = _HALF_NUMBER.sub("", text[start:].partition("\n```")[0])
    return from_json(written, allow_partial="trailing-strings")


def _value(value: Any, depth: int) -> str:
    if isinstance(value, Mapping):
        return _object(value, depth) if value else _quiet("empty")
    if isinstance(value, list):
        return _list(value, depth) if value else _quiet("empty list")
    if isinstance(value, str):
        if not value:
            return _quiet("empty text")
        more = f" {_quiet(f'… {len(value) - MAX_TEXT:,} more characters')}" if len(value) > MAX_TEXT else ""
        return f'<span style="white-space:pre-wrap">{escape(clean(value[:MAX_TEXT]))}</span>{more}'
    if value is None:
        return _quiet("none")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not math.isfinite(value):
        return escape(str(value))
    return escape(json.dumps(value, default=str))


def _object(value: Mapping[str, Any], depth: int) -> str:
    if depth >= MAX_DEPTH:
        return _quiet(f"{len(value):,} fields")
    rows = [
        f'<tr style="background:none"><th scope="row" style="{_CELL}">{escape(single_line(str(name), 80))}</th>'
        f'<td style="{_CELL};{QUIET};font-size:.85em">{_kind(each)}</td>'
        f'<td style="{_CELL}">{_value(each, depth + 1)}</td></tr>'
        for name, each in _first(list(value.items()))
    ]
    return f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>{_more(value)}'


def _list(value: list[Any], depth: int) -> str:
    if depth >= MAX_DEPTH:
        return _quiet(f"{len(value):,} items")
    if all(not isinstance(each, list | dict) for each in value) and sum(len(str(each)) for each in value) < 120:
        return ", ".join(_value(each, depth + 1) for each in _first(value)) + _more(value)
    items = "".join(f"<li>{_value(each, depth + 1)}</li>" for each in _first(value))
    return f'<ol style="margin:0;padding-left:1.6em">{items}</ol>{_more(value)}'


def _first(values: Sequence[Any]) -> Iterator[Any]:
    return iter(values[:MAX_ITEMS])


def _more(value: Any) -> str:
    return f"<div>{_quiet(f'… {len(value) - MAX_ITEMS:,} more')}</div>" if len(value) > MAX_ITEMS else ""


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"list of {len(value):,}"
    names = {str: "text", bool: "yes or no", int: "whole number", float: "number", dict: "object", type(None): ""}
    return names.get(type(value), "")


def _quiet(text: str) -> str:
    return f'<span style="{QUIET}">{escape(text)}</span>'
