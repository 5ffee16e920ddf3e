"""`Turn`: one question and all that came of it; and `Recorder`, which writes a turn from an agent's events.

A turn keeps everything for the person who looks at it: what was said, also when it was cut off. What it
leaves in the history for the next request is kept apart, in ``history``, and is always valid: no call
without a result, no half item.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Self, SupportsIndex

from mmsp_nb.approval import PendingCall
from mmsp_nb.eventlog import EventLog
from mmsp_nb.masking import mask_keys
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.copying import copy_item, copy_message, copy_messages
from mmsp_nb.protocol.items import PAYLOAD_FIELD, Item, UniMessage, UsageMetadata
from mmsp_nb.protocol.suggestions import shown
from mmsp_nb.tools import ToolOutcome, interrupted

__all__ = ["Recorder", "Turn", "join", "merged"]

State = Literal["running", "done", "partial", "failed"]

_REPLAYED = ("text", "tool_call", "inline_data", "image_url")
"""Kinds of items that make an assistant's message worth sending; thinking alone is refused."""


@dataclass(eq=False)
class Turn:
    """One question with its answer, tool calls and their results included.

    Attributes:
        id: Unique, and the same in a fork; ``parent`` is the id of the turn before it, None for the first.
        model, client_type: Who answered.
        origin: Who can read the fidelity of its answers, as in `UniMessage`; None when not known.
        messages: The user's message, then answers and tool results by turns. An item that was cut off has
            ``"partial": True``.
        config: What the question was asked with, tools apart; ``tools`` has their names.
        usage: Tokens of all requests together, None when none was reported. ``estimated``: a request was cut off, and
            what it took is not known but estimated from what was sent and what had come.
        finish_reason: Of the last request.
        state: ``running``; ``done``; ``partial`` when it was stopped, or failed after something had come;
            ``failed`` when nothing came of it.
        reason: ``answer``; ``approval`` when a call needs a person's word; ``max_turns``, ``max_calls`` or ``max_cost``
            when a limit ended it; None unless done.
        error: The exception that ended it; None also when the user did.
        outcomes: The tool calls with the real objects they returned.
        pending: What is still to be sent to go on: tool results, or the prompt of a failed turn; else None.
        held: Calls that were not run: until a person has decided, or because of a limit. ``waiting`` are those of them
            that need a word.
        typed: What the answer had to be, and how far it is that (`TypedAnswer`); None for plain answers.
        masked: How many keys were replaced by ``***`` before the model read them, by place: ``prompt``, ``system``,
            ``tools`` (their descriptions), ``results``. Empty when there were none.
        asked: With which tools and under which policy, to go on in the same way.
        started: Unix time in seconds. ``first_token`` and ``duration`` are seconds from then on.
        resumes: It has sent again what the turn before it left unsent.
        history: What it leaves for later requests; like ``messages``, but complete items only.
        prices: List prices per million tokens, None when not known.
        cell: The id of the notebook cell that asked; None elsewhere.
        hidden: Kept for the person, not sent. ``pinned``: `compact` leaves it alone.
        stale: It was answered on a history that has changed since.
        summary: It stands for turns that `compact` has hidden, which are ``summarised``.
        basis: Stands for the history it was answered on.
        log: The events of its requests with their times; None for a turn out of a file.
    """

    model: str
    messages: list[UniMessage] = field(default_factory=list)
    client_type: str | None = None
    origin: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    parent: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    usage: UsageMetadata | None = None
    estimated: bool = False
    finish_reason: str | None = None
    state: State = "running"
    reason: Literal["answer", "approval", "max_turns", "max_calls", "max_cost"] | None = None
    error: BaseException | None = None
    outcomes: list[ToolOutcome] = field(default_factory=list)
    pending: UniMessage | None = None
    held: list[Item] = field(default_factory=list)
    waiting: list[PendingCall] = field(default_factory=list)
    typed: Any = None
    masked: dict[str, int] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.time)
    first_token: float | None = None
    duration: float | None = None
    resumes: bool = False
    history: list[UniMessage] = field(default_factory=list)
    prices: dict[str, Any] | None = None
    cell: str | None = None
    hidden: bool = False
    pinned: bool = False
    stale: bool = False
    summary: bool = False
    summarised: bool = False
    basis: str | None = None
    log: EventLog | None = None

    @property
    def prompt(self) -> str:
        """The text of the user's message."""
        return _text(self.messages[:1], "text")

    @property
    def text(self) -> str:
        """The text of the last answer, cut off or not."""
        return _text(self._answers()[-1:], "text")

    @property
    def thinking(self) -> str:
        """All readable thinking of the turn, one paragraph for each item."""
        return _text(self._answers(), "thinking", "\n\n")

    @property
    def cost(self) -> Decimal | None:
        """List price of the turn, in the currency of ``prices``; None when it cannot be known."""
        return tokens.cost(self.usage, self.prices)

    def copy(self) -> Turn:
        """A copy that shares nothing that changes; the objects that tools returned are the same ones."""
        lists = {name: list(getattr(self, name)) for name in ("outcomes", "tools", "waiting")}
        kept = {**self.__dict__, **lists, "asked": dict(self.asked)}
        for name in ("messages", "history"):
            kept[name] = copy_messages(kept[name])
        for name in ("config", "usage", "pending", "prices", "held", "masked"):
            kept[name] = copy_item(kept[name])
        return Turn(**kept)

    def __repr__(self) -> str:
        return f"<Turn {self.state}, {self.model}: {_short(self.prompt)!r} -> {_short(self.text)!r}>"

    def _answers(self) -> list[UniMessage]:
        return [message for message in self.messages if message["role"] == "assistant"]


class Hiding:
    """`Turn.hidden`, with a count of all changes: one number tells whether somebody has hidden or shown a turn."""

    changes = 0

    def __get__(self, turn: Turn | None, owner: type[Turn]) -> Any:
        return self if turn is None else turn.__dict__["hidden"]

    def __set__(self, turn: Turn, hidden: bool) -> None:
        Hiding.changes += turn.__dict__.get("hidden", hidden) != hidden
        turn.__dict__["hidden"] = hidden


Turn.hidden = Hiding()  # type: ignore[assignment]


class Turns:
    """`Conversation.turns`: whatever is put there becomes a list that takes turns only."""

    def __get__(self, conversation: Any, owner: Any = None) -> list[Turn]:
        if conversation is None:
            raise AttributeError("the turns are those of a conversation")
        turns: list[Turn] = conversation.__dict__["turns"]
        return turns

    def __set__(self, conversation: Any, turns: Iterable[Turn]) -> None:
        conversation.__dict__["turns"] = turns if isinstance(turns, TurnList) else TurnList(turns)


class TurnList(list[Turn]):
    """Turns that may be changed by hand; what is no turn is refused with a TypeError."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        super().__init__(_only_turns(turns))

    def append(self, turn: Turn) -> None:
        super().extend(_only_turns([turn]))

    def insert(self, index: SupportsIndex, turn: Turn) -> None:
        super().insert(index, *_only_turns([turn]))

    def extend(self, turns: Iterable[Turn]) -> None:
        super().extend(_only_turns(turns))

    def __iadd__(self, turns: Iterable[Turn]) -> Self:  # type: ignore[override, misc]
        self.extend(turns)
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, _only_turns(value) if isinstance(index, slice) else _only_turns([value])[0])


def _only_turns(turns: Any) -> list[Turn]:
    if not isinstance(turns, Iterable):
        raise TypeError(f"turns is a list of Turn, not {shown(turns)}; chat.reset() forgets all")
    found = list(turns)
    for turn in found:
        if not isinstance(turn, Turn):
            raise TypeError(f"turns holds Turn objects only, not {shown(turn)}; chat.ask(...) makes one")
    return found


class Recorder:
    """Writes a `Turn` from the events of an agent. `stop` ends it early, and may be called at any moment.

    ``held`` are the calls that are answered before anything is sent, in a turn that goes on with those of another.
    """

    def __init__(self, turn: Turn, held: Iterable[Item] = ()) -> None:
        self.turn = turn
        self._begin = time.monotonic()
        self._asking: UniMessage | None = None  # the user message of a request that has no stop yet
        self._first = True
        self._items: list[Item] = []
        self._running: tuple[str, list[str]] | None = None  # kind and pieces of the running text or thinking
        self._calls = list(held)  # those of the last response that have no outcome yet
        self._results_due = bool(self._calls)  # whether the last response asked for tools
        self.cut: tuple[UniMessage, list[Item]] | None = None  # a request that was cut off, and what had come of it
        self._ended = bool(self._calls)  # whether the last response's turn_end has come

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in one event of the agent."""
        turn, kind = self.turn, event["type"]
        if kind == "event":
            if turn.log is None:
                turn.log = EventLog()
            turn.log.add(time.monotonic() - self._begin, event["event"])
            self._take(event["event"])
        elif kind == "turn_start":
            # kept as it is until the request ends: the agent may still take pictures out that the model refuses
            own = self._first and bool(turn.messages)
            self._asking = turn.messages[0] if own else event["message"]
            if not own:
                turn.messages.append(copy_message(event["message"]))
            self._first = False
            self._items, self._running = [], None
            self._calls, self._results_due, self._ended = [], False, False
        elif kind == "turn_end":
            self._calls, self._ended = list(event["calls"]), True
        elif kind == "tool_end":
            outcome = event["outcome"]
            turn.outcomes.append(outcome)
            self._calls = [call for call in self._calls if call is not outcome.call]
        elif kind == "end":
            turn.reason = event["reason"]
            turn.pending = copy_item(event["pending"])
            turn.held, turn.waiting = copy_item(event.get("held", [])), list(event.get("waiting", []))
            for message in (turn.pending, event.get("closing")):
                if message is not None:
                    self._keep(message)
            self._finish("done")

    def stop(self, error: BaseException | None, pending: UniMessage | None = None) -> None:
        """The turn ended early: by ``error``, or by the user when that is no `Exception`.

        ``pending`` is what the agent had still to send. Does nothing when the turn has ended already.
        """
        turn = self.turn
        if turn.state != "running":
            return
        asking, self._asking = self._asking, None
        received = bool(self._items or self._running)
        if asking is not None:
            self._cut_off(asking)
        elif self._results_due:
            # while the tools ran the agent knows best; before that none of them has run
            self._keep(pending if self._ended and pending is not None else _interruptions(self._calls))
        elif turn.history:  # all was said, only nobody read on
            turn.reason = "answer"
            self._finish("done")
            return
        turn.error = error if isinstance(error, Exception) else None
        turn.outcomes += [interrupted(copy_item(call)) for call in self._calls]
        last = turn.history[-1] if turn.history else None
        if last is None:
            turn.pending = copy_message(turn.messages[0]) if turn.messages else None
        elif last["role"] == "user":
            turn.pending = copy_message(last)
        self._finish("failed" if turn.error is not None and not received and not turn.history else "partial")

    def _take(self, event: Mapping[str, Any]) -> None:
        for item in event["content_items"]:
            kind, _, phase = item["type"].partition(".")
            if self.turn.first_token is None:
                self.turn.first_token = time.monotonic() - self._begin
            if phase == "done":
                self._items.append(copy_item(item))
                self._running = None
            elif kind in ("text", "thinking"):
                if self._running is None or self._running[0] != kind:
                    self._running = kind, []
                self._running[1].append(item[PAYLOAD_FIELD[kind]])
        if event["event_type"] == "stop":
            self._complete(event)

    def _complete(self, event: Mapping[str, Any]) -> None:
        """The stop event: the client has recorded the request, and so do we."""
        turn = self.turn
        if self._asking is None:  # some MMSP server has said it twice
            return
        answer: UniMessage = {
            "role": "assistant",
            "content_items": self._items,
            "usage_metadata": tokens.whole(event.get("usage_metadata")),
            "finish_reason": event.get("finish_reason"),
            "created_at": event.get("created_at"),
        }
        if event.get("usage_metadata") is not None:
            turn.usage = tokens.add(turn.usage, event["usage_metadata"])
        turn.finish_reason = event.get("finish_reason")
        turn.messages.append(answer)
        turn.history += [copy_message(self._asking), copy_message(answer)]
        self._calls = [item for item in self._items if item["type"] == "tool_call.done"]
        self._results_due = bool(self._calls)
        self._asking, self._items, self._running = None, [], None

    def _cut_off(self, asking: UniMessage) -> None:
        """The request was cut off: what was complete stays valid, what was running is kept to be seen."""
        turn, items = self.turn, self._items
        self.cut = asking, items
        shown, running = list(items), None
        if self._running is not None:
            kind, payload = self._running[0], "".join(self._running[1])
            self.cut = asking, [*items, {"type": f"{kind}.done", PAYLOAD_FIELD[kind]: payload}]
            if payload.strip():
                running = {"type": f"{kind}.done", PAYLOAD_FIELD[kind]: payload}
                shown.append({**running, "partial": True})
        if shown:
            turn.messages.append({"role": "assistant", "content_items": shown})
        said = _replayable(items, running)
        if said:
            turn.history += [copy_message(asking), {"role": "assistant", "content_items": copy_item(said)}]
            self._calls = [item for item in said if item["type"] == "tool_call.done"]
            if self._calls:
                self._keep(_interruptions(self._calls))
        elif any(item["type"] == "tool_result.done" for item in asking["content_items"]):
            turn.history.append(copy_message(asking))  # the calls before them need their answers

    def _keep(self, message: UniMessage) -> None:
        self.turn.messages.append(copy_message(message))
        self.turn.history.append(copy_message(message))

    def _finish(self, state: State) -> None:
        self.turn.duration = time.monotonic() - self._begin
        self.turn.state = state


def join(turns: Iterable[Turn], before: Iterable[UniMessage] = ()) -> list[UniMessage]:
    """The history that ``turns`` leave after the messages ``before``; each message says its origin.

    User messages that follow each other become one: results of tools that were not sent go out together
    with the next question, which is the only form that every provider takes.
    """
    joined = list(before)
    for turn in turns:
        if turn.resumes and turn.history and joined and joined[-1]["role"] == "user":
            joined.pop()  # the turn has sent it again, as its own first message
        for message in turn.history:
            if turn.origin is not None and "origin" not in message:
                message = {**message, "origin": turn.origin}
            if joined and joined[-1]["role"] == message["role"] == "user":
                joined[-1] = merged(joined[-1], message)
            else:
                joined.append(message)
    return joined


def merged(first: UniMessage, second: UniMessage) -> UniMessage:
    """Two user messages as one, with the origin of the first."""
    both: UniMessage = {**second, "content_items": [*first["content_items"], *second["content_items"]]}
    if "origin" in first:
        both["origin"] = first["origin"]
    return both


def _replayable(items: list[Item], running: Item | None) -> list[Item]:
    """The part of a cut-off answer that can be sent again, or nothing.

    Thinking is sent only before something that is complete: providers want to see what it led to.
    """
    last = max((i for i, item in enumerate(items) if _kind(item) in _REPLAYED), default=-1)
    said = items[: last + 1]
    if running is not None and running["type"] == "text.done":
        said = [*said, running]
    return said if any(_says_something(item) for item in said) else []


def _interruptions(calls: Iterable[Item]) -> UniMessage:
    return {"role": "user", "content_items": [interrupted(call).item() for call in calls]}


def _says_something(item: Item) -> bool:
    return _kind(item) in _REPLAYED and (_kind(item) != "text" or bool(item["text"].strip()))


def _kind(item: Item) -> str:
    kind: str = item["type"].partition(".")[0]
    return kind


def _text(messages: Iterable[UniMessage], kind: str, between: str = "") -> str:
    items = (item for message in messages for item in message["content_items"])
    return between.join(item[PAYLOAD_FIELD[kind]] for item in items if item["type"] == f"{kind}.done")


def _short(text: str) -> str:
    text = mask_keys(" ".join(text[:1000].split()))
    return text if len(text) <= 60 else text[:57] + "..."
