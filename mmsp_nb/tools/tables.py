"""pandas and numpy values as text for a model: shape, types, the first rows."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["scalar", "text"]

MAX_ROWS = 20
MAX_COLUMNS = 30
MAX_CELL = 100
MAX_ELEMENTS = 1_000
"""Elements of an array that are written out; of a larger one the corners."""


def scalar(value: Any, otherwise: Any) -> Any:
    """A numpy or pandas scalar as a Python one; ``otherwise`` when ``value`` is none."""
    generic = _type("numpy", "generic")
    if generic is not None and isinstance(value, generic):
        item = value.item()
        return item if isinstance(item, bool | int | float | str) else str(item)
    missing = getattr(sys.modules.get("pandas"), "NA", None)
    return "NA" if missing is not None and value is missing else otherwise


def text(value: Any) -> str | None:
    """A DataFrame, Series, Index or array as text; None for anything else."""
    frame, series, index = (_type("pandas", name) for name in ("DataFrame", "Series", "Index"))
    if frame is not None and isinstance(value, frame):
        return _frame(value)
    if series is not None and isinstance(value, series):
        return _series(value)
    if index is not None and isinstance(value, index):
        shown = ", ".join(_cell(each) for each in value[:MAX_ROWS])
        more = _rest(len(value), "values")
        title = f"{type(value).__name__} of {_counted(len(value), 'value')}, {value.dtype}: {shown}"
        return f"{title}\n{more}" if more else title
    array = _type("numpy", "ndarray")
    return _array(value) if array is not None and isinstance(value, array) else None


def _type(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)


def _cell(value: Any) -> str:
    written = str(value).replace("\r", "").replace("\n", " ").replace("|", "\\|")
    return written if len(written) <= MAX_CELL else written[: MAX_CELL - 3] + "..."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _rest(count: int, what: str) -> str:
    return f"(the first {MAX_ROWS} of {count:,} {what})" if count > MAX_ROWS else ""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _frame(frame: Any) -> str:
    rows, columns = frame.shape
    shown = frame.iloc[:MAX_ROWS, :MAX_COLUMNS]
    head = [" "] + [f"{_cell(name)} ({kind})" for name, kind in zip(shown.columns, shown.dtypes, strict=True)]
    body = [[_cell(each) for each in row] for row in shown.itertuples(index=True, name=None)]
    notes = [
        _rest(rows, "rows"),
        f"(the first {MAX_COLUMNS} of {columns:,} columns; the others: "
        f"{', '.join(_cell(name) for name in frame.columns[MAX_COLUMNS : 3 * MAX_COLUMNS])})"
        if columns > MAX_COLUMNS
        else "",
    ]
    title = f"DataFrame of {_counted(rows, 'row')} and {_counted(columns, 'column')}"
    return "\n".join(part for part in [title, _table(head, body), *notes] if part)


def _series(series: Any) -> str:
    name = "" if series.name is None else f" {_cell(series.name)!r}"
    head = [" ", f"{_cell(series.name) if series.name is not None else 'value'} ({series.dtype})"]
    body = [[_cell(key), _cell(each)] for key, each in series.iloc[:MAX_ROWS].items()]
    title = f"Series{name} of {_counted(len(series), 'value')}"
    return "\n".join(part for part in [title, _table(head, body), _rest(len(series), "values")] if part)


def _array(array: Any) -> str:
    import numpy

    title = f"{type(array).__name__} of shape {array.shape}, {array.dtype}"
    written = numpy.array2string(array, separator=", ", threshold=MAX_ELEMENTS, max_line_width=160)
    return f"{title}\n{written}" + ("\n(only the corners of the array)" if array.size > MAX_ELEMENTS else "")
