"""A row becomes what is asked about it: by a template, by a function, or because the row is the prompt."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mmsp_nb.mapping.rows import Rows, names_of
from mmsp_nb.notebook.options import OptionError
from mmsp_nb.notebook.prompt import Template
from mmsp_nb.protocol.errors import InvalidMessageError
from mmsp_nb.protocol.history import normalize_legacy_messages, now_ms
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.protocol.validation import check_messages
from mmsp_nb.questions import user_message

__all__ = ["Prompts"]


class Prompts:
    """Makes the messages for each row; the last of them is the user's.

    Args:
        rows: The rows.
        prompt: A text with ``{{expressions}}`` of a row's columns or fields, ``row`` and ``index``; a function of the
            row that returns a prompt or a list of messages; None when the rows are prompts.
        images: Columns with pictures, or a function of the row that returns pictures.
        names: What expressions may use beside the row.

    Raises ValueError or TypeError, in one line, for a prompt that cannot be one.
    """

    def __init__(
        self,
        rows: Rows,
        prompt: str | Callable[[Any], Any] | None,
        images: str | Sequence[str] | Callable[[Any], Any] | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self._rows = rows
        self._names = {} if names is None else names
        self._images = [images] if isinstance(images, str) else images
        self._template: Template | None = None
        self._function: Callable[[Any], Any] | None = None
        for column in self._images if isinstance(self._images, list | tuple) else ():
            if rows.columns is not None and column not in rows.columns:
                raise ValueError(f"images={column!r}: there is no such column{did_you_mean(column, _texts(rows))}")
        if isinstance(prompt, str):
            self._template = self._read(prompt)
        elif callable(prompt):
            if inspect.iscoroutinefunction(prompt):
                raise TypeError("prompt is an async function: make it a plain one, which returns the prompt of a row")
            self._function = prompt
        elif prompt is not None:
            raise TypeError(f"prompt is a text, a function of the row or None, not {type(prompt).__name__}")
        elif rows.columns is not None:
            raise ValueError(f"a table needs a prompt, such as '{{{{{_texts(rows)[0] if rows.columns else 'text'}}}}}'")

    def _read(self, prompt: str) -> Template:
        try:
            template = Template(prompt, unknown=self._known())
        except OptionError as error:
            column = next((name for name in _texts(self._rows) if f"{{{{{name}}}}}" in prompt), None)
            if column is None or column.isidentifier():
                raise ValueError(f"prompt, {error}") from None
            raise ValueError(
                f"prompt: {column!r} is a column, but no name in Python: write {{{{row[{column!r}]}}}}"
            ) from None
        if not template.names and self._images is None and self._rows.length != 1:
            raise ValueError(
                "prompt has no {{expression}}, so every row would be asked the same: "
                f"put {{{{{_texts(self._rows)[0] if self._rows.columns else self._rows.name}}}}} where the row belongs"
            )
        return template

    def _known(self) -> str:
        """What expressions can use, for one that uses something else."""
        columns = [name for name in _texts(self._rows) if name.isidentifier()]
        shown = [*columns[:8], *(["..."] if len(columns) > 8 else []), "row", "index"]
        return f"an expression knows {', '.join(shown)}, and what names={{...}} or names=globals() adds"

    def messages(self, position: int, row: Any) -> list[UniMessage]:
        """What is sent for a row. Raises InvalidMessageError, or what the user's function raises."""
        images = self._pictures(row)
        if self._template is not None:
            names = names_of(row, self._rows.name, self._rows.label(position), self._names)
            try:
                said = self._template.fill(names)
            except OptionError as error:
                raise InvalidMessageError(str(error)) from error
        else:
            said = row if self._function is None else self._function(row)
        if isinstance(said, Mapping) and "role" in said:
            said = [said]
        if isinstance(said, list | tuple) and said and all(isinstance(m, Mapping) and "role" in m for m in said):
            return _checked(said, images)
        return [user_message(said, images)]

    def _pictures(self, row: Any) -> list[Any]:
        if self._images is None:
            return []
        if callable(self._images):
            found = self._images(row)
            several = isinstance(found, Iterable) and not isinstance(found, str | bytes)
            return [each for each in (found if several else [found]) if each is not None]
        fields = names_of(row, self._rows.name, None, {})
        missing = next((name for name in self._images if name not in fields), None)
        if missing is not None:
            raise InvalidMessageError(f"images={missing!r}: the row has no such column{did_you_mean(missing, fields)}")
        return [value for name in self._images if not _missing(value := fields[name])]


def _checked(said: Sequence[Any], images: list[Any]) -> list[UniMessage]:
    """A conversation that is to be gone on with; pictures join its last message."""
    messages: list[UniMessage] = normalize_legacy_messages([dict(message) for message in said])
    if messages[-1]["role"] != "user":
        raise InvalidMessageError("the last message for a row must be the user's", message_index=len(messages) - 1)
    if images:
        pictures = user_message("", images)["content_items"]
        messages[-1] = {**messages[-1], "content_items": [*pictures, *messages[-1]["content_items"]]}
    messages[-1].setdefault("created_at", now_ms())
    check_messages(messages)
    return messages


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)  # how tables say it


def _texts(rows: Rows) -> list[str]:
    return [str(name) for name in rows.columns or ()]
