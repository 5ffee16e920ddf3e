"""A result as a table of pandas or polars, and as static text and HTML: bounded, escaped, without times."""

from __future__ import annotations

import dataclasses
import html as markup
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmsp_nb.mapping.rows import Rows
from mmsp_nb.masking import mask_keys

if TYPE_CHECKING:
    from mmsp_nb.mapping.results import Mapped

__all__ = ["frame", "html", "text"]

SHOWN = 10
"""So many rows are shown of a result."""

WIDTH = 60
"""Characters shown of a row or a value in text; five times as many in HTML."""


def frame(rows: Rows, values: Sequence[Any], name: str) -> Any:
    """The rows with ``values`` beside them; see `Mapped.to_frame`. ImportError without a library for it."""
    source = rows.source
    if type(source).__module__.partition(".")[0] == "polars":
        return _polars(rows, values, name)
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    index = source.index if hasattr(source, "iloc") else list(rows.labels) if rows.labels is not None else None
    if hasattr(source, "iloc"):
        left = source if rows.columns is not None else source.to_frame(rows.name)
    else:
        given = [rows[position] for position in range(len(values))]
        if given and all(isinstance(row, Mapping) for row in given):
            left = pandas.DataFrame.from_records([dict(row) for row in given], index=index)
        else:
            left = pandas.DataFrame({rows.name: pandas.Series(given, dtype=None if given else object)})
            if index is not None:
                left.index = pandas.Index(index)
    columns = _columns(values, name, {str(column) for column in left.columns})
    right = pandas.DataFrame({key: _series(pandas, column) for key, column in columns.items()})
    right.index = left.index
    return pandas.concat([left, right], axis=1)


def _series(pandas: Any, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if len(known) < len(values) and known and all(isinstance(value, bool) for value in known):
        return pandas.Series(values, dtype="boolean")
    if len(known) < len(values) and known and all(type(value) is int for value in known):
        return pandas.Series(values, dtype="Int64")  # a missing one would make floats of them
    return pandas.Series(values, dtype=None if known else object)


def _polars(rows: Rows, values: Sequence[Any], name: str) -> Any:
    import polars

    left = rows.source if rows.columns is not None else rows.source.alias(rows.name).to_frame()
    columns = _columns(values, name, set(left.columns))
    made = [polars.Series(key, column, strict=False) for key, column in columns.items()]
    return left.with_columns(made)


def _columns(values: Sequence[Any], name: str, taken: set[str]) -> dict[str, list[Any]]:
    """The columns that ``values`` make: one for each field where all have fields."""
    from mmsp_nb.mapping.results import MapError

    failed = [isinstance(value, MapError) for value in values]
    fields = [None if bad else fields_of(value) for value, bad in zip(values, failed, strict=True)]
    columns: dict[str, list[Any]] = {}
    if any(each is not None for each in fields) and all(
        each is not None or bad for each, bad in zip(fields, failed, strict=True)
    ):
        names = dict.fromkeys(key for each in fields for key in each or ())
        columns = {key: [None if each is None else each.get(key) for each in fields] for key in names}
    else:
        columns = {name: [None if bad else value for value, bad in zip(values, failed, strict=True)]}
    if any(failed):
        said = [str(value) if bad else None for value, bad in zip(values, failed, strict=True)]
        columns["error" if "error" not in columns else f"{name}_error"] = said
    return {_free(key, name, taken): column for key, column in columns.items()}


def _free(key: str, name: str, taken: set[str]) -> str:
    if key in taken:
        key = f"{name}_{key}" if key != name else f"{key}_"
        while key in taken:
            key += "_"
    return key


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of an object: of a pydantic model, dataclass, named tuple or dict; None for all else."""
    if isinstance(value, Mapping):
        return {str(key): inner for key, inner in value.items()}
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names: Iterable[str] | None = getattr(type(value), "model_fields", None) or getattr(value, "_fields", None)
    return None if names is None else {key: getattr(value, key) for key in names}


# to look at


def title(result: Mapped) -> str:
    """A result in one line."""
    errors, usage = len(result.errors), result.usage
    parts = [f"{len(result) - errors:,} of {len(result):,} rows answered by {result.model}"]
    if errors:
        parts.append(f"{errors:,} without an answer: .errors says why, .retry() asks them again")
    if usage is not None:
        from mmsp_nb.protocol.usage import totals

        parts.append(f"{totals(usage).total or 0:,} tokens")
    if (cost := result.cost) is not None:
        from mmsp_nb.money import dollars

        parts.append(dollars(cost))
    if masked := sum(result.masked.values()):
        parts.append(f"{masked:,} key{'' if masked == 1 else 's'} masked")
    return "; ".join(parts)


def text(result: Mapped) -> str:
    """The title and the first rows."""
    lines = [title(result)]
    for label, row, value, _ in _shown(result, WIDTH):
        lines.append(f"  {label}: {row} -> {value}")
    if len(result) > SHOWN:
        lines.append(f"  ... and {len(result) - SHOWN:,} more rows")
    return "\n".join(lines)


def html(result: Mapped) -> str:
    """The same as a table; what rows and answers say is text in it, whatever it is."""
    cell = "text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:break-word;min-width:3em"
    body = []
    for label, row, value, failed in _shown(result, 5 * WIDTH):
        look = f"{cell};color:var(--jp-error-color1,#c62828)" if failed else cell
        body.append(
            f'<tr><th style="{cell}">{markup.escape(label)}</th><td style="{cell}">{markup.escape(row)}</td>'
            f'<td style="{look}">{markup.escape(value)}</td></tr>'
        )
    more = f"<div>... and {len(result) - SHOWN:,} more rows</div>" if len(result) > SHOWN else ""
    head = f"<tr><th></th><th style='{cell}'>row</th><th style='{cell}'>answer</th></tr>"
    return f"<div>{markup.escape(title(result))}</div><table>{head}{''.join(body)}</table>{more}"


def _shown(result: Mapped, width: int) -> Iterable[tuple[str, str, str, bool]]:
    from mmsp_nb.mapping.results import MapError

    for position in range(min(len(result), SHOWN)):
        value = result[position]
        failed = isinstance(value, MapError)
        row, label = result._rows[position], result._rows.label(position)
        yield _brief(label, width), _brief(row, width), _brief(str(value) if failed else value, width), failed


def _brief(value: Any, width: int) -> str:
    try:
        written = value[: 4 * width] if isinstance(value, str) else repr(value)
    except Exception as error:  # a row's own repr may do anything
        written = f"<{type(value).__name__}, whose repr fails: {type(error).__name__}>"
    line = mask_keys(" ".join(written[: 8 * width].split()))
    return line if len(line) <= width else f"{line[: width - 1]}…"
