"""Request bodies as JSON, and what of them earlier requests have made already.

A history grows at its end, and a client never changes a message that it has recorded: it replaces its whole
list, or appends. So the JSON of the messages of one request is right for the next one too. `Past` keeps it,
and knows its messages by identity: any list that does not begin with the very same objects is written anew.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, TypeVar

import pydantic_core

from mmsp_nb.protocol.errors import InvalidMessageError

__all__ = ["Encoded", "Past", "encode", "entries"]

State = TypeVar("State")


class Encoded:
    """Stands in a body for a list, whose JSON it is in pieces without commas between them."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def json(self) -> bytes:
        return b"[%b]" % b",".join(filter(None, self.pieces))


class Past:
    """The JSON of the first messages of a history, and what a dialect has to remember of them.

    Only for messages that nobody changes. The last message of a request is never kept: one that fails is not
    recorded, and what is asked instead is another message.

    Attributes:
        count: how many messages of the list that `follow` was given are known.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Let go of all messages."""
        self._known: Sequence[Any] = ()
        self._coming: Sequence[Any] = ()
        self._json = b""
        self._state: Any = None

    @property
    def count(self) -> int:
        return len(self._known)

    def follow(self, messages: Sequence[Any]) -> int:
        """A request with these messages comes next; how many of them, from the first on, are known."""
        if len(self._known) > len(messages) or not all(map(is_, self._known, messages)):
            self.forget()
        self._coming = messages
        return self.count

    def encoded(
        self, fresh: Sequence[Any], convert: Callable[[int, Any, State], list[dict[str, Any]]], state: State
    ) -> tuple[bytes, bytes]:
        """The JSON of all messages of the request, those in ``fresh`` being new: without the last one, and of that."""
        known, first = self._json, self.count
        state = copy.copy(self._state if first else state)
        wire = [entry for at, message in enumerate(fresh[:-1], first) for entry in convert(at, message, state)]
        if wire:
            known = b",".join(filter(None, (known, _inner(wire))))
        last = convert(first + len(fresh) - 1, fresh[-1], copy.copy(state)) if fresh else []
        self._known = self._coming[: first + max(len(fresh) - 1, 0)]
        self._coming, self._json, self._state = (), known, state
        return known, _inner(last)


def entries(
    past: Past | None,
    messages: Sequence[Any],
    convert: Callable[[int, Any, State], list[dict[str, Any]]],
    state: State,
    head: Iterable[dict[str, Any]] = (),
) -> list[dict[str, Any]] | Encoded:
    """What stands for ``messages`` in a body, as a list or as its JSON.

    Args:
        past: what is known of the messages before these; None: a list is wanted.
        convert: ``(index, message, state)`` to the message's entries. It must depend on these and the model alone,
            never on the config.
        state: what it begins with; it changes it as it goes through the messages.
        head: entries before those of the messages.
    """
    if past is None:
        return [*head, *(entry for at, message in enumerate(messages) for entry in convert(at, message, state))]
    return Encoded(_inner(list(head)), *past.encoded(messages, convert, state))


def encode(body: Mapping[str, Any]) -> bytes:
    """A request body as UTF-8 JSON. Text that UTF-8 cannot hold (half an emoji) goes out escaped."""
    if not any(value.__class__ is Encoded for value in body.values()):
        return _json(body)
    fields = (
        b"%b:%b" % (_json(key), value.json() if value.__class__ is Encoded else _json(value))
        for key, value in body.items()
    )
    return b"{%b}" % b",".join(fields)


def _json(value: Any) -> bytes:
    try:
        return pydantic_core.to_json(value)
    except pydantic_core.PydanticSerializationError:
        pass
    try:
        return json.dumps(value).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidMessageError(f"the request cannot be written as JSON: {error}") from None


def _inner(values: list[dict[str, Any]]) -> bytes:
    """A list's JSON without its brackets."""
    return _json(values)[1:-1]
