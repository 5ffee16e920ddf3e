"""Raw deltas in, the public stream out: the only place where deltas become items.

A provider's fragments may interleave, repeat names or announce items that never come. The public
stream is orderly: the deltas of one item, its done, then the next item. `Assembler` makes the one of
the other, `EventStream` wraps the items into events and knows when a response is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.errors import (
    EmptyResponseError,
    IncompleteStreamError,
    ResponseTooLargeError,
    StreamProtocolError,
    ToolCallArgumentParseError,
)
from mmsp_nb.protocol.history import now_ms
from mmsp_nb.protocol.items import Item, UniEvent, UniMessage, UsageMetadata
from mmsp_nb.protocol.runs import AGAIN, Delta, Run
from mmsp_nb.protocol.usage import merge

__all__ = ["Assembler", "EventStream", "concat_uni_events_to_uni_message", "require_answer"]

_IGNORED: Final = Run("text")
"""Stands for "belongs to nothing that is still open"."""

_BOOKKEEPING = frozenset({"usage", "finish"})


class Assembler:
    """Turns the raw deltas of one response into public delta and done items.

    What `push` and `close` append to ``out`` is the consumer's: `items` shares nothing with it. When
    they raise, everything that comes before the fault in the public order is already in ``out``.
    After an error or `close` the assembler is used up.

    Runs stand in ``_runs`` in their public order. The first is live, its deltas go out at once; there
    are others only while it cannot be closed yet. That is so for a tool call whose arguments are
    unfinished and whose id would tell its fragments from those of other calls (Q-02), and for
    thinking that may still get its signature although the next item was announced (Q-23).
    """

    __slots__ = ("_closed", "_closed_calls", "_plain", "_runs", "client", "items")

    def __init__(self, client: str = "") -> None:
        self.client = client
        self.items: list[Item] = []
        """All done items so far, in order."""
        self._runs: list[Run] = []
        self._plain: Run | None = None
        self._closed: set[str] = set()
        self._closed_calls: dict[str, Run] = {}

    def push(self, raw: Item, out: list[Item]) -> None:
        """Take the next raw delta; append what becomes public to ``out``.

        Raises:
            StreamProtocolError: the delta cannot be part of a legal stream.
            ToolCallArgumentParseError: the call that ends here has no proper arguments.
        """
        run = self._plain
        if run is not None and raw.get("type") == run.type:
            # nearly every delta: one more piece of what is running, and nothing else about it
            text = raw.get(run.field)
            fidelity = raw.get("fidelity")
            known = len(raw) == run.size if fidelity is None else len(raw) == run.size + 1 and fidelity == run.seen
            if known and text.__class__ is str and text:
                if run.kind != "tool_call":
                    run.chunks.append(text)
                    out.append({"type": run.type, run.field: text})
                    return
                if raw.get("name") == "" == raw.get("tool_call_id"):
                    run.chunks.append(text)
                    out.append({"type": run.type, "name": "", "arguments": text, "tool_call_id": ""})
                    return
        self._place(raw, out)

    def close(self, out: list[Item]) -> None:
        """The response is over: append the done items still missing.

        Raises:
            ToolCallArgumentParseError: as in `push`.
        """
        self._end_last(out)
        while self._runs:
            self._close_first(out)

    def unfinished(self) -> int:
        """The largest payload of the items that have no done yet, in characters or bytes."""
        return max((run.weigh() for run in self._runs), default=0)

    # -- where a delta belongs -------------------------------------------------------------------

    def _place(self, raw: Item, out: list[Item]) -> None:
        runs = self._runs
        self._plain = None
        run: Run | None = None
        try:
            delta = Delta(raw, self.client)
            run = self._owner_of_call(delta) if delta.kind == "tool_call" else self._owner(delta)
            if run is None:
                run = self._begin(delta.kind, out)
            if run is not _IGNORED:
                self._take(run, delta, out)
        except StreamProtocolError:
            self._deliver_before(run, out)
            raise
        while len(runs) > 1 and self._closable(runs[0]):
            self._close_first(out)
        if len(runs) == 1 and runs[0].size and runs[0].first is not None and not runs[0].late:
            self._plain = runs[0]

    def _owner(self, delta: Delta) -> Run | None:
        """The run that ``delta`` goes on with; None if it begins an item."""
        last = self._runs[-1] if self._runs else None
        if last is not None and not last.begins_anew(delta):
            return last
        if delta.id is None or delta.fidelity is None or not delta.empty:
            return None
        # nothing but fidelity: it is for the item of that id, whatever the kind of this delta
        for run in self._runs:
            if run.adopts(delta):
                return run
        if delta.id in self._closed and last is not None and last.first is not None and last.id != delta.id:
            if all(late.id != delta.id or late.fidelity != delta.fidelity for late in last.late):
                last.late.append(delta)
            return _IGNORED
        return None

    def _owner_of_call(self, delta: Delta) -> Run | None:
        """The call that ``delta`` goes on with; None if it begins one."""
        calls = [run for run in self._runs if run.kind == "tool_call" and not run.ended]
        last = calls[-1] if calls else None
        if delta.id is None:
            same = last
        else:
            same = next((run for run in reversed(calls) if run.id == delta.id), None)
        if same is None and delta.id in self._closed_calls and not delta.payload.strip():
            over = self._closed_calls[delta.id]
            if not delta.fields["name"] or over.continued_by(delta):
                return _IGNORED  # blanks after the arguments
        if not delta.fields["name"]:
            return same or last
        if same is None or (delta.id is None and (same.id is not None or same is not self._runs[-1])):
            return None
        if not same.continued_by(delta):
            same.ended = True  # its fragments and those of the new call could not be told apart
            return None
        if same.first is not None:
            delta.fields["name"] = delta.fields["tool_call_id"] = ""
            delta.empty = not delta.payload
        return same

    def _begin(self, kind: str, out: list[Item]) -> Run:
        self._end_last(out)
        run = Run(kind)
        self._runs.append(run)
        return run

    def _end_last(self, out: list[Item]) -> None:
        """Another item follows, or nothing: settle what only the running item could have decided."""
        if not self._runs:
            return
        last = self._runs[-1]
        if last.first is None:
            self._runs.pop()
            return
        last.ended = last.ended or last.kind != "tool_call" or last.id is None
        late, last.late = last.late, []
        for delta in late:
            run = Run(delta.kind)
            self._runs.append(run)
            self._take(run, delta, out)
            run.ended = True

    # -- taking a delta in -----------------------------------------------------------------------

    def _take(self, run: Run, delta: Delta, out: list[Item]) -> None:
        if run.kind != delta.kind or run.ended:
            self._adopt(run, delta, out)
            return
        if run.id is None:
            run.id = delta.id
        fidelity = delta.fidelity
        if fidelity is not None and run.fidelity is not None:
            if fidelity == run.fidelity:
                fidelity = None
            elif run.kind == "tool_call":
                raise StreamProtocolError("one tool call with two different fidelities" + AGAIN, client=self.client)
            else:  # two signed blocks in a row are two items
                self._take(self._begin(delta.kind, out), delta, out)
                return
        run.seen = dict(delta.mark)
        if delta.empty and fidelity is None:
            return
        if run.first is None:
            if run.kind == "tool_call" and not (delta.fields["name"] and delta.fields["tool_call_id"]):
                raise StreamProtocolError("a tool call begins without a name or an id" + AGAIN, client=self.client)
            run.first = copy_item(delta.fields)
        if delta.payload:
            run.late.clear()
        run.chunks.append(delta.payload if run.kind != "embedding" else list(delta.payload))
        self._emit(run, delta.fields, fidelity, out)

    def _adopt(self, run: Run, delta: Delta, out: list[Item]) -> None:
        """Give ``run`` a fidelity that came in an empty delta."""
        if run.fidelity is None:
            self._emit(run, run.emptied(), delta.fidelity, out)

    def _emit(self, run: Run, item: Item, fidelity: dict[str, Any] | None, out: list[Item]) -> None:
        if fidelity is not None:
            run.fidelity = copy_item(fidelity)
            item["fidelity"] = fidelity
        (out if run is self._runs[0] else run.buffer).append(item)

    # -- closing ---------------------------------------------------------------------------------

    def _closable(self, run: Run) -> bool:
        """Whether the live run, which others wait for, can get its done now."""
        if run.kind == "tool_call":
            return run.ended or run.finished()
        may_get_fidelity = run.kind == "thinking" and run.id is not None and run.fidelity is None
        return not may_get_fidelity or any(other.first is not None for other in self._runs[1:])

    def _close_first(self, out: list[Item]) -> None:
        run = self._runs.pop(0)
        if run.first is not None:
            item = run.done(self.client)
            self.items.append(item)
            out.append(copy_item(item))
            if run.id is not None:
                self._closed.add(run.id)
                if run.kind == "tool_call":
                    self._closed_calls[run.id] = run
        if self._runs:
            out.extend(self._runs[0].buffer)
            self._runs[0].buffer.clear()

    def _deliver_before(self, run: Run | None, out: list[Item]) -> None:
        """A fault in ``run`` (None: in no run): let out what the public order has before it."""
        if run is not None and run.first is None:
            self._runs.remove(run)
            run = None
            keep = 0
        else:
            keep = 1
        while len(self._runs) > keep and self._runs[0] is not run:
            self._close_first(out)


class EventStream:
    """Turns the raw values of one response into public events, and into the message to be recorded.

    Args:
        client: the adapter's class name, for errors.
        now: the clock of ``created_at``, in Unix milliseconds.
    """

    def __init__(self, client: str = "", *, now: Callable[[], int] = now_ms) -> None:
        self.client = client
        self.usage: UsageMetadata | None = None
        """The usage reported so far."""
        self.finish_reason: str | None = None
        """The last finish reason reported so far."""
        self.message: UniMessage | None = None
        """The assistant's message once `close` has returned; it shares nothing with the events."""
        self._assembler = Assembler(client)
        self._push = self._assembler.push
        self._now = now

    @property
    def items(self) -> list[Item]:
        """All done items so far; not to be modified."""
        return self._assembler.items

    def push(self, raws: Sequence[dict[str, Any]], out: list[UniEvent]) -> None:
        """Take raw deltas, pieces of usage and finish reasons; append the resulting events to ``out``.

        Raises the errors of `Assembler.push`; the events before the fault are then in ``out``.
        """
        items: list[Item] = []
        push = self._push
        try:
            for raw in raws:
                if raw.get("type") not in _BOOKKEEPING:
                    push(raw, items)
                elif raw["type"] == "usage":
                    self.usage = merge(self.usage, raw)
                else:
                    self.finish_reason = str(raw.get("finish_reason") or "") or self.finish_reason
        finally:
            if items:
                self._wrap(items, out)

    def room(self, limit: int) -> int:
        """By how much the item that is being received may still grow; ``limit`` in characters or bytes.

        Raises ResponseTooLargeError when it is larger already.
        """
        room = limit - self._assembler.unfinished()
        if room < 0:
            raise ResponseTooLargeError(
                f"a text or other item of the answer is larger than the limit of {limit}. The model probably repeats "
                "itself: ask again. Allow more with Transport(max_item=...)",
                client=self.client,
                limit=limit,
            )
        return room

    def close(self, out: list[UniEvent]) -> None:
        """The provider's stream is over: append the last done items and the stop, set `message`.

        Raises:
            ToolCallArgumentParseError: the last call has no proper arguments.
            IncompleteStreamError: usage or a finish reason never came.
            EmptyResponseError: there is no done item, or there are only thinking ones.
        """
        items: list[Item] = []
        try:
            self._assembler.close(items)
        except ToolCallArgumentParseError as error:
            if self.finish_reason == "length":  # what happened, and what helps
                error.message = error.message.removesuffix(AGAIN) + "; the token budget ended in them: raise max_tokens"
                error.args = (error.message,)
            raise
        finally:
            self._wrap(items, out)
        usage, reason = self.usage, self.finish_reason
        missing = (("usage_metadata",) if usage is None else ()) + (() if reason else ("finish_reason",))
        if usage is None or not reason:
            raise IncompleteStreamError(
                f"the provider's stream ended without {' and '.join(missing)}; it was probably cut. Ask again",
                client=self.client,
                missing=missing,
                finish_reason=reason,
                usage_metadata=usage,
            )
        require_answer(self.client, self.items, reason, usage)
        now = self._now()
        self.message = {
            "role": "assistant",
            "content_items": self.items,
            "usage_metadata": usage,
            "finish_reason": reason,
            "created_at": now,
        }
        out.append(
            {
                "role": "assistant",
                "event_type": "stop",
                "content_items": [],
                "usage_metadata": usage.copy(),
                "finish_reason": reason,
                "created_at": now,
            }
        )

    def _wrap(self, items: list[Item], out: list[UniEvent]) -> None:
        now = self._now()
        for item in items:
            out.append(
                {
                    "role": "assistant",
                    "event_type": "delta",
                    "content_items": [item],
                    "usage_metadata": None,
                    "finish_reason": None,
                    "created_at": now,
                }
            )


def require_answer(client: str, items: Sequence[Item], reason: str | None, usage: UsageMetadata | None) -> None:
    """EmptyResponseError when the done ``items`` of a complete response say nothing, or only think."""
    if all(item["type"] in ("thinking.done", "inline_thinking.done") for item in items):
        said = "only thinking" if items else "nothing"
        advice = "The token budget ended it: raise max_tokens" if reason == "length" else "Ask again, or otherwise"
        raise EmptyResponseError(
            f"the model's answer holds {said} (finish reason: {reason}). {advice}",
            client=client,
            finish_reason=reason,
            usage_metadata=usage,
        )


def concat_uni_events_to_uni_message(events: Iterable[Mapping[str, Any]]) -> UniMessage:
    """The assistant's message out of its events: all done items in order, and what the last stop says.

    Usage, finish reason and ``created_at`` are None when there is no stop. Nothing is shared with the
    events.
    """
    items: list[Item] = []
    stop: Mapping[str, Any] = {}
    for event in events:
        if event.get("event_type") == "stop":
            stop = event
        items += [copy_item(item) for item in event["content_items"] if item["type"].endswith(".done")]
    return {
        "role": "assistant",
        "content_items": items,
        "usage_metadata": copy_item(stop.get("usage_metadata")),
        "finish_reason": stop.get("finish_reason"),
        "created_at": stop.get("created_at"),
    }
