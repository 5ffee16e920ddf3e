"""`Answer`: what `Conversation.ask` returns, a view of one turn."""

from __future__ import annotations

import weakref
from decimal import Decimal
from typing import Any, ClassVar

from mmsp_nb import reprs
from mmsp_nb.approval import PendingCall
from mmsp_nb.blocks import CodeBlock, code_blocks, parse_json
from mmsp_nb.media import Picture
from mmsp_nb.protocol.items import UniMessage, UsageMetadata
from mmsp_nb.tools import ToolOutcome
from mmsp_nb.turns import Turn

__all__ = ["Answer"]


class Answer:
    """The outcome of a question. ``str(answer)`` is its text.

    Attributes:
        turn: The `Turn` behind it, with times and state.
        shown: A host has drawn it already. The next display in a notebook then draws nothing; the host
            resets this when the cell has ended.
    """

    _drawn: ClassVar[weakref.WeakSet[Answer]] = weakref.WeakSet()

    def __init__(self, turn: Turn, *, shown: bool = False) -> None:
        self.turn = turn
        self.shown = shown
        if shown:
            self._drawn.add(self)

    @classmethod
    def forget_shown(cls) -> None:
        """The cell has ended: whoever displays an answer of it later wants to see it."""
        while cls._drawn:
            cls._drawn.pop().shown = False

    @property
    def text(self) -> str:
        """The answer's text; of a question that reached the limit of requests, what was said last."""
        return self.turn.text

    @property
    def thinking(self) -> str:
        """All readable thinking, tool calls in between left out."""
        return self.turn.thinking

    @property
    def messages(self) -> list[UniMessage]:
        """The question, answers, calls and results, in order."""
        return self.turn.messages

    @property
    def calls(self) -> list[ToolOutcome]:
        """The tool calls: each with ``name``, ``arguments``, and as ``result`` the object the function returned."""
        return self.turn.outcomes

    @property
    def value(self) -> Any:
        """The validated object of an answer with a type; None when it was asked for none, or is not there yet."""
        return None if self.turn.typed is None else self.turn.typed.value

    @property
    def code(self) -> list[CodeBlock]:
        """The fenced blocks of code in the text, each with ``language`` and ``code``; ``str(block)`` is its code."""
        return code_blocks(self.text)

    def json(self) -> Any:
        """The JSON value that the text is, or that stands in its only block of JSON.

        Raises ValueError, in one line, when it is none. For an answer of a known form, ask with a ``type``.
        """
        return parse_json(self.text)

    @property
    def awaiting(self) -> list[PendingCall]:
        """The calls that wait for a person's word before the answer can go on."""
        return list(self.turn.waiting)

    @property
    def images(self) -> list[Picture]:
        """The pictures in the answer."""
        items = (item for message in self.messages for item in message["content_items"])
        return [
            Picture(item["mime_type"], item["data"])
            for item in items
            if item["type"] == "inline_data.done" and item["mime_type"].startswith("image/")
        ]

    @property
    def usage(self) -> UsageMetadata | None:
        """Tokens of all requests of the question."""
        return self.turn.usage

    @property
    def cost(self) -> Decimal | None:
        """List price in US dollars; None when it is not known."""
        return self.turn.cost

    @property
    def model(self) -> str:
        return self.turn.model

    @property
    def finish_reason(self) -> str | None:
        """Of the last response: ``stop``, ``length``, ``tool_call``, ``unknown``."""
        return self.turn.finish_reason

    @property
    def masked(self) -> dict[str, int]:
        """How many keys were replaced by ``***`` before the model read them, by place; see `Turn.masked`."""
        return self.turn.masked

    @property
    def complete(self) -> bool:
        """Whether the model has answered: not cut off, not at a limit, and not waiting for approval."""
        return self.turn.state == "done" and self.turn.reason == "answer"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return reprs.answer_text(self.turn)

    def _repr_html_(self) -> str:
        return reprs.answer_html(self.turn)

    def _ipython_display_(self, **kwargs: Any) -> None:
        if not self.shown:
            raise NotImplementedError  # IPython then goes on with the other representations
        self.shown = False
