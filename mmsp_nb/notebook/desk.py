"""`Desk`: the inspector's side in Python. A page sends small messages, the desk answers with bounded ones.

It knows no IPython and no widget: `inspector` connects it with a notebook, `mmsp_nb.traces` with a page on loopback.
A page that is open while an answer runs is told of it by deltas, at most ten times a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mmsp_nb.comparing import diff
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import MMSPError, UnsupportedOperationError
from mmsp_nb.turns import Turn

from . import attachments, details, documents
from .asker import Asker
from .following import Following
from .formulas import mathml
from .markdown import to_html
from .options import OptionError
from .rows import KINDS, Row, describe, matches, rows_of, safe, turn_facts
from .sanitize import clean
from .secrets import mask

__all__ = ["Desk"]

WINDOW = 80
"""Rows in one message at most."""

BYTES = 400_000
"""Characters of the rows in one message, beyond which they are sent in several."""

BARS = 300
"""Turns in the bar of usage; more are put together."""

Send = Callable[[dict[str, Any]], None]


class Desk:
    """Answers the messages of one page about one conversation.

    Args:
        conversation: A `Conversation`.
        send: Sends a message to the page; called on the thread of the question or of a running answer.
        writable: Whether the page may ask and change things.
        namespace: Gives the user's variables, for ``{{expressions}}`` in questions; they are evaluated on the
            thread that hands in the question.
        folder: Gives the folder where files are written; None writes none, and hands documents to the page only.
    """

    def __init__(
        self,
        conversation: Any,
        send: Send,
        *,
        writable: bool = True,
        namespace: Callable[[], Mapping[str, Any]] = dict,
        folder: Callable[[], Path] | None = None,
    ) -> None:
        self.conversation = conversation
        self._send = send
        self._writable = writable
        self._namespace = namespace
        self._folder = folder
        self._asked: Any = None
        self._lock = threading.RLock()
        self._kinds: list[str] | None = None
        self._text = ""
        self._made: dict[str, tuple[Turn, list[Row]]] = {}
        self._rows: list[Row] | None = None
        self._index: dict[str, Row] = {}
        self._following = Following(self._changed, self._grown)
        self._asker = Asker(conversation, self._failed)
        self._stop = conversation.watch(self._following.take)

    def close(self) -> None:
        """Follow the conversation no longer."""
        self._stop()
        self._following.close()

    def handle(self, message: Mapping[str, Any]) -> None:
        """Answer one message of the page. Whatever is wrong with it is told to the page."""
        op = message.get("op")
        answer = _OPS.get(op) if isinstance(op, str) else None
        try:
            if answer is None:
                raise UnsupportedOperationError(f"no such request: {str(op)[:40]!r}", operation="inspect")
            with self._lock:
                answer(self, message)
        except Exception as error:
            self._send({"op": "note", "error": True, "text": _line(error), "for": message.get("id")})

    # the rows

    def _all_rows(self) -> list[Row]:
        """The rows that the filter leaves, in order; a turn's line stands above its rows."""
        if self._rows is not None:
            return self._rows
        rows: list[Row] = []
        kept: dict[str, tuple[Turn, list[Row]]] = {}
        wanted = self._kinds is not None or bool(self._text)
        for turn in self.conversation.turns:
            made = self._made.get(turn.id)
            if made is None or made[0] is not turn or turn.state == "running" or not made[1]:
                made = (turn, rows_of(turn, self._following.items(turn)))
            if turn.state != "running":
                kept[turn.id] = made
            if not wanted:
                rows += made[1]
                continue
            found = [row for row in made[1] if matches(row, self._kinds, self._text)]
            if found:
                rows += [made[1][0], *found]
        self._made = kept
        self._rows = rows
        self._index = {}
        return rows

    def _find(self, message: Mapping[str, Any]) -> Row:
        if not self._index:
            self._index = {row.id: row for row in self._all_rows()}
        row = self._index.get(str(message.get("row")))
        if row is None:
            raise UnsupportedOperationError("that item is not there any more", operation="inspect")
        return row

    def _turn(self, message: Mapping[str, Any]) -> Turn:
        for turn in self.conversation.turns:
            if turn.id == message.get("turn"):
                return turn
        raise UnsupportedOperationError("that turn is not in this branch", operation="inspect")

    def _window(self, start: int, end: int) -> dict[str, Any]:
        rows = self._all_rows()
        start = max(0, min(start, len(rows)))
        sent: list[dict[str, Any]] = []
        size = 0
        for row in rows[start : min(end, start + WINDOW)]:
            data = describe(row)
            size += sum(len(value) for value in data.values() if isinstance(value, str))
            size += sum(len(image.get("src", "")) for image in data.get("images", ()))
            if sent and size > BYTES:
                break
            sent.append(data)
        return {"op": "rows", "from": start, "total": len(rows), "rows": sent}

    # what the page asks

    def _hello(self, message: Mapping[str, Any]) -> None:
        self._send(self._state(gauge=False))
        total = len(self._all_rows())
        size = min(max(int(message.get("size") or 40), 1), WINDOW)
        self._send({**self._window(total - size, total), "reset": "end"})
        if not self.conversation.running:  # the last: it may take a look at all messages
            self._send({"op": "gauge", **self._gauge()})

    def _gauge(self) -> dict[str, Any]:
        gauge = self.conversation.estimate()
        return {"tokens": gauge.tokens, "window": gauge.window, "exact": gauge.exact == gauge.tokens}

    def _state(self, *, gauge: bool = True) -> dict[str, Any]:
        chat = self.conversation
        names = list(chat.branches.items())
        running = bool(chat.running)
        state: dict[str, Any] = {
            "op": "state",
            "title": safe(chat.name or "Conversation"),
            "model": safe(chat.model),
            "branch": safe(chat.branch),
            "branches": [{"name": safe(name), "turns": len(turns)} for name, turns in names[:40]],
            "turns": len(chat.turns),
            "writable": self._writable,
            "files": self._folder is not None,
            "running": running,
            "undo": not running and chat._can_undo(),
            "redo": not running and chat._can_redo(),
            "kinds": KINDS,
            "bars": self._bars(),
            "waiting": [safe(str(call))[:2_000] for call in chat.awaiting] if self._writable and not running else [],
            "cost": None if chat.cost is None else float(chat.cost),
        }
        if gauge and not running:
            state["gauge"] = self._gauge()
        return state

    def _bars(self) -> list[dict[str, Any]]:
        turns = self.conversation.turns
        step = max((len(turns) + BARS - 1) // BARS, 1)
        bars = []
        for start in range(0, len(turns), step):
            some = turns[start : start + step]
            counted = [tokens.totals(turn.usage) for turn in some]
            states = {turn.state for turn in some}
            bars.append(
                {
                    "turn": some[0].id,
                    "n": start + 1,
                    "in": max(total.input or 0 for total in counted),
                    "out": sum(total.output or 0 for total in counted),
                    "state": next((s for s in ("failed", "partial", "running") if s in states), "done"),
                    "hidden": all(turn.hidden for turn in some),
                }
            )
        return bars

    def _rows_wanted(self, message: Mapping[str, Any]) -> None:
        self._send(self._window(int(message["from"]), int(message["to"])))

    def _filter(self, message: Mapping[str, Any]) -> None:
        kinds = message.get("kinds")
        self._kinds = None if kinds is None else [kind for kind in kinds if kind in KINDS]
        self._text = str(message.get("text") or "").strip().lower()[:200]
        self._rows = None
        at = "end" if message.get("at") == "end" else "start"
        first = max(len(self._all_rows()) - WINDOW // 2, 0) if at == "end" else 0
        self._send({**self._window(first, first + WINDOW // 2), "reset": at, "seq": message.get("seq")})

    def _locate(self, message: Mapping[str, Any]) -> None:
        """Where a turn, or the next error after a row, stands."""
        rows = self._all_rows()
        if message.get("turn"):
            found = next((n for n, row in enumerate(rows) if row.turn.id == message["turn"]), None)
        else:
            after = int(message.get("after", -1))
            wrong = [n for n, row in enumerate(rows) if row.kind != "turn" and matches(row, ["error"], "")]
            found = next((n for n in wrong if n > after), wrong[0] if wrong else None)
        if found is None:
            self._note("there are no errors", error=False)
        else:
            self._send({"op": "at", "index": found})

    def _body(self, message: Mapping[str, Any]) -> None:
        self._send({"op": "body", "row": describe(self._find(message), full=True)})

    def _raw(self, message: Mapping[str, Any]) -> None:
        row = self._find(message)
        self._detail(message, "JSON", details.item_json(row))

    def _request(self, message: Mapping[str, Any]) -> None:
        turns = list(self.conversation.turns)
        turn, wanted = self._turn(message), int(message.get("number") or 1)
        text, number, count = details.request(self.conversation, turns, turn, wanted)
        self._send({"op": "request", "turn": turn.id, "number": number, "count": count, "text": text})

    def _events(self, message: Mapping[str, Any]) -> None:
        found = details.events(self._turn(message), int(message.get("from") or 0))
        self._send({"op": "events", "turn": message["turn"], **found})

    def _detail(self, message: Mapping[str, Any], title: str, text: str) -> None:
        self._send({"op": "detail", "row": message.get("row") or message.get("turn"), "title": title, "text": text})

    def _copy(self, message: Mapping[str, Any]) -> None:
        row = self._find(message)
        form = message.get("form")
        if form not in ("text", "markdown", "json", "python"):
            raise UnsupportedOperationError(f"cannot copy as {str(form)[:20]!r}", operation="copy")
        self._send({"op": "copied", "form": form, "text": details.copied(row, form, list(self.conversation.turns))})

    def _compare(self, message: Mapping[str, Any]) -> None:
        branches = self.conversation.branches
        a, b = message.get("a"), message.get("b")
        if a not in branches or b not in branches:
            raise UnsupportedOperationError("there is no such branch", operation="compare")
        pairs = [
            {
                "status": pair.status,
                "a": None if pair.a is None else _side(pair.a),
                "b": None if pair.b is None else _side(pair.b),
            }
            for pair in diff(branches[a], branches[b])
        ]
        left_out = max(len(pairs) - 200, 0)
        self._send({"op": "compared", "a": a, "b": b, "pairs": pairs[-200:], "left_out": left_out})

    # what the page changes

    def _act(self, message: Mapping[str, Any]) -> None:
        self._allowed()
        name, chat = message.get("name"), self.conversation
        if name in ("hide", "show", "remove"):
            getattr(chat, name)(self._turn(message))
        elif name == "pin":
            turn = self._turn(message)
            chat.pin(turn, not turn.pinned)
        elif name == "fork":
            chat.split(self._turn(message))
        elif name in ("checkout", "drop"):
            getattr(chat, name)(str(message.get("branch")))
        elif name in ("undo", "redo"):
            getattr(chat, name)()
        elif name == "compact":
            self._asker.do(chat.compact_async(), self._compacted)
        else:
            raise UnsupportedOperationError(f"no such action: {str(name)[:40]!r}", operation="inspect")

    def _compacted(self, made: Turn | None) -> None:
        text = "there was nothing to compact" if made is None else "compacted; undo brings the turns back"
        self._note(text, error=False)

    def _ask(self, message: Mapping[str, Any]) -> None:
        self._allowed()
        edited = self._turn(message) if message.get("turn") else None
        prompt = attachments.question(message, self._namespace(), edited)
        if not prompt and not message.get("go_on"):
            raise OptionError("there is nothing to ask")
        self._asker.ask(prompt or None, edited)
        self._asked = message.get("id")
        self._send({"op": "asked", "id": self._asked})

    def _failed(self, text: str, refused: bool) -> None:
        """A question that could not be asked, or an answer that failed."""
        with self._lock:  # not before the page has been told that its question was taken
            self._note(text)
            if refused:
                self._send({"op": "returned", "id": self._asked, "text": safe(text)[:500]})

    def _decide(self, message: Mapping[str, Any]) -> None:
        self._allowed()
        self._asker.decide(message.get("approve") is True)

    def _names(self, message: Mapping[str, Any]) -> None:
        self._allowed()
        word = str(message.get("word") or "")
        self._send({"op": "names", "word": word, "names": attachments.names(word, self._namespace())})

    def _stop_asking(self, message: Mapping[str, Any]) -> None:
        if not self._asker.stop():
            self._note("this answer belongs to a cell: stop it there, with the notebook's stop button", error=False)

    def _prompt(self, message: Mapping[str, Any]) -> None:
        turn = self._turn(message)
        text, kept = attachments.typed(turn), attachments.kept_pictures(turn)
        self._send({"op": "prompt", "turn": turn.id, "text": text, "kept": kept})

    # what leaves the page

    def _export(self, message: Mapping[str, Any]) -> None:
        form = str(message.get("format"))
        if not message.get("file"):
            name, mime, text = documents.document(self.conversation, form)
            if len(text) <= documents.SIZE:
                self._send({"op": "document", "name": name, "mime": mime, "text": text})
                return
        self._write(form)

    def _save(self, message: Mapping[str, Any]) -> None:
        self._write("save")

    def _cells(self, message: Mapping[str, Any]) -> None:
        self._write("notebook")

    def _write(self, form: str) -> None:
        if self._folder is None:
            raise UnsupportedOperationError("this page writes no files", operation="export")
        self._send({"op": "written", **documents.shown_path(documents.write(self.conversation, self._folder(), form))})

    def _allowed(self) -> None:
        if not self._writable:
            raise UnsupportedOperationError("this is a record: it can be looked at only", operation="inspect")

    # what happens by itself

    def _note(self, text: str, *, error: bool = True) -> None:
        self._send({"op": "note", "error": error, "text": safe(text)[:500]})

    def _changed(self, whole: bool) -> None:
        """Rows came, went or changed; with ``whole``, what stands above them too."""
        with self._lock:
            self._rows = None
            if whole:
                self._send(self._state())
            self._send({"op": "stale", "whole": whole, "total": len(self._all_rows()), "tail": self._tail()})

    def _tail(self) -> list[dict[str, Any]]:
        """The rows of a running answer, which a page that follows it shows: no question needs to be asked for them."""
        turns = self.conversation.turns
        if not turns or not self._following.follows(turns[-1]):
            return []
        rows = self._all_rows()
        start = next((n for n in range(len(rows) - 1, -1, -1) if rows[n].kind == "turn"), 0)
        start = max(start, len(rows) - 6)
        return [{"n": n, **describe(rows[n])} for n in range(start, len(rows))]

    def _grown(self, row: str, text: str, start: int, before: str) -> None:
        with self._lock:
            self._rows = None
        near = before + text
        if mask(near, running=True) != near:  # a key, or what may become one: the row is sent anew, masked as a whole
            self._changed(False)
        else:
            self._send({"op": "grow", "row": row, "at": start, "text": clean(text)})


def _side(turn: Turn) -> dict[str, Any]:
    facts = turn_facts(turn)
    said = safe(turn.text[:1_500])
    html = to_html(said, formula=mathml) if said else ""
    return {**{key: facts[key] for key in ("turn", "model", "state", "prompt")}, "html": html}


def _line(error: Exception) -> str:
    text = str(error) if isinstance(error, MMSPError | OptionError) else f"{type(error).__name__}: {error}"
    return safe(" ".join(text.split()))[:300]


_OPS: dict[str, Callable[[Desk, Mapping[str, Any]], None]] = {
    "hello": Desk._hello,
    "rows": Desk._rows_wanted,
    "filter": Desk._filter,
    "locate": Desk._locate,
    "body": Desk._body,
    "raw": Desk._raw,
    "request": Desk._request,
    "events": Desk._events,
    "copy": Desk._copy,
    "compare": Desk._compare,
    "act": Desk._act,
    "ask": Desk._ask,
    "stop": Desk._stop_asking,
    "decide": Desk._decide,
    "prompt": Desk._prompt,
    "names": Desk._names,
    "export": Desk._export,
    "save": Desk._save,
    "cells": Desk._cells,
}
