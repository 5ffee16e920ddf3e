"""Rows out of whatever holds them: tables, columns, lists, dicts, generators. Nothing is copied that need not be."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

__all__ = ["Rows", "names_of"]


class Rows:
    """What is to be asked about, read once from the beginning to the end.

    Attributes:
        source: What was given.
        length: The number of rows; None where only the end will tell.
        labels: What the rows are called: the index of a table, the keys of a dict; None for 0, 1, 2, ...
        columns: The names of the columns of a table; None for all else.
        name: What a row by itself is called: the name of a column, else "row".

    Raises TypeError, in one line, for what holds no rows.
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self.length: int | None = None
        self.labels: Sequence[Any] | None = None
        self.columns: list[Any] | None = None
        self.name = "row"
        self._at: Callable[[int], Any] | None = None  # how a row is had again; those of a generator are kept
        self._kept: list[Any] = []
        self._iterator = self._open(source)
        self._read = 0

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self

    def __next__(self) -> tuple[int, Any]:
        """The next row with its position."""
        row = next(self._iterator)
        if self._at is None:
            self._kept.append(row)
        position, self._read = self._read, self._read + 1
        return position, row

    @property
    def read(self) -> int:
        """How many rows have been read."""
        return self._read

    def __getitem__(self, position: int) -> Any:
        """A row that can be had again, or that has been read."""
        return self._kept[position] if self._at is None else self._at(position)

    def label(self, position: int) -> Any:
        """What the row is called."""
        return position if self.labels is None else self.labels[position]

    def _open(self, source: Any) -> Iterator[Any]:
        if isinstance(source, str | bytes):
            raise TypeError("rows is one text: give a list of texts, [text]")
        if isinstance(source, AsyncIterable):
            raise TypeError("rows is asynchronous: collect them first, [row async for row in rows]")
        if isinstance(source, Mapping):
            self.length, self.labels = len(source), list(source)
            self._at = lambda position: source[self.label(position)]
            return iter(source.values())
        kind = {each.__module__.partition(".")[0] for each in type(source).__mro__}
        if "pandas" in kind and hasattr(source, "iloc"):
            return self._pandas(source)
        if "polars" in kind and hasattr(source, "get_column"):
            columns = self.columns = list(source.columns)
            self.length = len(source)
            self._at = lambda position: source.row(position, named=True)
            return (dict(zip(columns, values, strict=True)) for values in source.iter_rows())
        if hasattr(source, "collect_schema"):
            raise TypeError("rows is a lazy table: collect it first, rows.collect()")
        if hasattr(source, "to_list") and hasattr(source, "name"):  # a column of polars
            self.name = str(source.name or self.name)
            return self._sequence(source.to_list())
        if hasattr(source, "column_names") and hasattr(source, "__getitem__"):  # of pyarrow, of datasets
            self.columns = list(source.column_names)
            return self._sequence(source.to_pylist() if hasattr(source, "to_pylist") else source)
        if hasattr(source, "tolist") and hasattr(source, "ndim"):
            if source.ndim != 1:
                raise TypeError(f"rows is an array of {source.ndim} dimensions: give one of one dimension, or a table")
            return self._sequence(source.tolist())
        if isinstance(source, Sequence):
            return self._sequence(source)
        if not isinstance(source, Iterable):
            raise TypeError(f"rows is a list, a table or another source of rows, not {type(source).__name__}")
        self.length = len(source) if isinstance(source, Sized) else None
        return iter(source)

    def _sequence(self, values: Any) -> Iterator[Any]:
        self.length = len(values)
        self._at = values.__getitem__
        return iter(values)

    def _pandas(self, source: Any) -> Iterator[Any]:
        self.length, self.labels = len(source), source.index
        if not hasattr(source, "columns"):
            self.name = str(source.name if source.name is not None else self.name)
            self._at = lambda position: source.iloc[position]
            return iter(source)
        columns = self.columns = list(source.columns)
        if len({str(name) for name in columns}) < len(columns):
            twice = next(name for name in columns if [str(each) for each in columns].count(str(name)) > 1)
            raise TypeError(f"the table has two columns of the name {twice!r}: rename one")

        def named(table: Any) -> Iterator[dict[Any, Any]]:
            return (dict(zip(columns, row, strict=True)) for row in table.itertuples(index=False, name=None))

        self._at = lambda position: next(named(source.iloc[[position]]))
        return named(source)


def names_of(row: Any, name: str, label: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a row's expressions: its columns or fields, then ``row``, ``index``, then ``more``."""
    return {**more, "index": label, "row": row, name: row, **_fields(row)}


def _fields(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return {str(key): value for key, value in row.items()}
    if isinstance(row, str | int | float | bytes | type(None)):
        return {}
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    if isinstance(row, tuple):
        return dict(zip(getattr(row, "_fields", ()), row, strict=False))
    own = getattr(row, "__dict__", None)
    return {name: value for name, value in own.items() if not name.startswith("_")} if isinstance(own, dict) else {}
