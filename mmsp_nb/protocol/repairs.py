"""Makes a history sendable to another vendor than the one it comes from, and says what it did.

Items need no translation to move between vendors, but vendors differ in what they refuse: thinking
without their own signature, empty texts, calls without a result, ids with odd characters. `Traits`
says what a vendor refuses, `repair` mends just that.
"""

from __future__ import annotations

import base64
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mmsp_nb.protocol.call_ids import NewIds
from mmsp_nb.protocol.items import REDACTED_THINKING, Item

__all__ = ["Change", "RepairReport", "Traits", "repair"]

NO_RESULT = "There is no result: the call was interrupted."
BEGINNING = "(The beginning of this conversation is missing.)"
NO_THOUGHT = "(Another model's thoughts, which are not known.)"
IMAGE_BELOW = "[image: see the next message]"
IMAGE_ABOVE = "[from the message above:]"
IMAGE_GONE = "[image left out]"


@dataclass(frozen=True, slots=True)
class Traits:
    """What a vendor demands of a history. The defaults demand nothing."""

    empty_text: Literal["any", "signed", "none"] = "any"
    """Which texts without a visible character may be sent."""
    thinking: Literal["any", "signed", "none"] = "any"
    """Which thinking may be sent; signed is what has one of `signatures` in its fidelity."""
    signatures: frozenset[str] = frozenset({"signature"})
    thought_calls: bool = False
    """A message with calls must have thinking with a text."""
    refused: frozenset[str] = frozenset()
    """Kinds of items that may not be sent, such as ``"inline_data"``. Images take the form that is left."""
    assistant_images: bool = True
    """``image_url`` items may stand in assistant messages; else they go into the user's next message."""
    silent_messages: bool = True
    """Messages of thinking alone may be sent."""
    paired_calls: bool = False
    """Each call must be answered in the very next message, results first, and no result stand alone."""
    id_characters: str | None = None
    """All the characters a ``tool_call_id`` may have; None for any."""
    id_length: int | None = None
    """How many characters a ``tool_call_id`` may have at most."""
    unique_ids: bool = False
    """No two calls of a conversation may have the same id."""
    named_ids: bool = True
    """The id of a call may be the name of its tool."""
    user_first: bool = False
    """The first message must be the user's."""
    alternating: bool = False
    """No two messages of the same role may follow each other."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was done, and to which message of the input (for an inserted one: of its neighbour)."""

    message: int
    what: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `repair` did. It is falsy when that was nothing; `str` makes one line of it."""

    changes: tuple[Change, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict)
    """New ``tool_call_id`` -> the original one."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        return "; ".join(f"message {change.message}: {change.what}" for change in self.changes) or "nothing to repair"


def repair(
    messages: Sequence[Any],
    *,
    traits: Traits = Traits(),
    foreign: Container[int] = (),
    own: Container[int] = (),
    whole: bool = True,
) -> tuple[list[Any], RepairReport]:
    """``messages`` as a vendor with these traits takes them, and a report of what was changed.

    The input is never modified; a message that needs no change is returned as the same object. The
    same history is repaired the same way each time, so that a vendor's prompt cache stays valid.

    Args:
        messages: the list that is to be sent, valid as by `check_messages`.
        traits: the demands of the vendor it goes to.
        foreign: the indexes of messages that another vendor's model wrote. Their fidelity is left
            out: a signature means nothing, or an error, to a vendor that did not make it.
        own: the indexes of messages that were made here, or that are new. They stay as they are, but
            for what is missing around them: results of calls, the new ids of the calls they answer.
        whole: nothing follows: the last message, which is what is asked, is then never left out.
    """
    if traits == Traits() and not any(index in foreign for index in range(len(messages))):
        return list(messages), RepairReport()
    work = _Repair(messages, traits, own, len(messages) - 1 if whole else -1)
    work.mend_items(foreign)
    if traits.paired_calls:
        work.pair_calls()
    work.move_images()
    work.leave_out_messages()
    if traits.id_characters is not None or traits.id_length is not None or traits.unique_ids or not traits.named_ids:
        work.rename_calls()
    work.order_roles()
    return [entry.result() for entry in work.entries], RepairReport(
        tuple(sorted(work.changes, key=lambda change: change.message)), work.ids
    )


class _Entry:
    """A message on its way through the repair; its items are replaced, never modified in place."""

    __slots__ = ("hopeless", "images", "index", "items", "message", "moved", "own", "role")

    def __init__(self, index: int, message: dict[str, Any], own: bool = False) -> None:
        self.index = index
        self.message = message
        self.role = str(message["role"])
        self.items: list[Item] = message["content_items"]
        self.own = own
        self.images: list[Item] = []
        """Images that may not stand here, for the user's next message."""
        self.moved = False
        """A result of this message went to its call, further up."""
        self.hopeless = False
        """The last message, of which nothing would remain: it stays as it was."""

    def result(self) -> dict[str, Any]:
        same = self.items is self.message["content_items"]
        return self.message if same else {**self.message, "content_items": self.items}

    def positions(self, kind: str) -> list[int]:
        return [number for number, item in enumerate(self.items) if item["type"] == kind]


class _Repair:
    def __init__(self, messages: Sequence[Any], traits: Traits, own: Container[int], last: int) -> None:
        self.entries = [_Entry(index, message, index in own) for index, message in enumerate(messages)]
        self.traits = traits
        self.last = last  # index of a message that is never left out
        self.changes: list[Change] = []
        self.ids: dict[str, str] = {}

    def note(self, entry: _Entry, what: str) -> None:
        self.changes.append(Change(entry.index, what))

    # -- single items ----------------------------------------------------------------------------

    def mend_items(self, foreign: Container[int]) -> None:
        for entry in self.entries:
            if entry.own:
                continue
            mended: list[Item] = []
            for item in entry.items:
                if entry.index in foreign and item.get("fidelity"):
                    item = {key: value for key, value in item.items() if key != "fidelity"}
                    self.note(entry, f"another vendor's fidelity of a {_kind(item)} left out")
                mended += self._mended(item, entry)
            if self.traits.thought_calls and _is_thoughtless(mended):
                mended.insert(0, {"type": "thinking.done", "thinking": NO_THOUGHT})
                self.note(entry, "a word put where thinking is missing")
            if len(mended) != len(entry.items) or any(a is not b for a, b in zip(mended, entry.items, strict=True)):
                entry.items = mended

    def _mended(self, item: Item, entry: _Entry) -> Iterator[Item]:
        kind, traits = _kind(item), self.traits
        if kind == "thinking":
            if not self._is_one_of(traits.thinking, item):
                self.note(entry, "thinking left out" if traits.thinking == "none" else "unsigned thinking left out")
                return
            if not item.get("fidelity") and item["thinking"] in ("", REDACTED_THINKING):
                self.note(entry, "thinking without a text left out")
                return
        if kind == "text" and not item["text"].strip() and not self._is_one_of(traits.empty_text, item):
            self.note(entry, "an empty text left out")
            return
        if kind == "inline_data" and kind in traits.refused and item["mime_type"].startswith("image/"):
            payload = base64.b64encode(item["data"]).decode("ascii")
            item = {"type": "image_url.done", "image_url": f"data:{item['mime_type']};base64,{payload}"}
            kind = "image_url"
            if kind not in traits.refused:
                self.note(entry, "an inline image sent as an image URL")
        if kind == "tool_result" and item.get("images") is not None and "image_url" in traits.refused:
            if item["images"]:
                item = {**item, "text": f"{item['text']}\n[images left out]".lstrip()}
                self.note(entry, "the images of a tool result left out")
            item = {**item, "images": None}
        if kind in traits.refused:
            self.note(entry, f"{kind} left out")
            if kind in ("image_url", "inline_data"):
                yield _text(IMAGE_GONE if kind == "image_url" else f"[{item['mime_type']} left out]")
        elif kind == "image_url" and entry.role != "user" and not traits.assistant_images:
            entry.images.append(item)
            yield _text(IMAGE_BELOW)
        else:
            yield item

    def _is_one_of(self, which: str, item: Item) -> bool:
        """Whether an item may be sent where ``which`` of them may: any, signed ones, none."""
        return which == "any" or (
            which == "signed" and bool(self.traits.signatures & (item.get("fidelity") or {}).keys())
        )

    def move_images(self) -> None:
        """Images of assistant messages go into the user's next message, after its tool results."""
        images: list[Item] = []
        for entry in self.entries:
            if entry.role != "user":
                images += entry.images
            elif images:
                results = len(entry.positions("tool_result.done"))
                entry.items = [*entry.items[:results], _text(IMAGE_ABOVE), *images, *entry.items[results:]]
                self.note(entry, f"{len(images)} image{'s' * (len(images) > 1)} of the message above put here")
                images = []
        for entry in reversed(self.entries):
            if entry.role == "user":
                break
            if entry.images:  # no message follows that could take them
                entry.items = [_text(IMAGE_GONE) if item == _text(IMAGE_BELOW) else item for item in entry.items]
                self.note(entry, "image_url left out")

    # -- calls and results -----------------------------------------------------------------------

    def _answers(self) -> tuple[dict[tuple[int, int], tuple[int, int]], list[tuple[int, int]]]:
        """Call -> its result, and the results without a call; all as (entry, item) positions.

        Ids need not be unique: a result belongs to the latest message that has an open call of its
        id, and there to the first of them.
        """
        waiting: dict[str, list[tuple[int, int]]] = {}
        answers: dict[tuple[int, int], tuple[int, int]] = {}
        alone: list[tuple[int, int]] = []
        for at, entry in enumerate(self.entries):
            for number in entry.positions("tool_call.done"):
                waiting.setdefault(entry.items[number]["tool_call_id"], []).append((at, number))
            for number in entry.positions("tool_result.done"):
                calls = waiting.get(entry.items[number]["tool_call_id"])
                if calls:
                    latest = calls[-1][0]
                    call = next(call for call in calls if call[0] == latest)
                    calls.remove(call)
                    answers[call] = (at, number)
                else:
                    alone.append((at, number))
        return answers, alone

    def pair_calls(self) -> None:
        answers, alone = self._answers()
        gone = set(alone)
        for at, _ in alone:
            self.note(self.entries[at], "a tool result without a call left out")
        additions: dict[int, list[Item]] = {}
        for at, entry in enumerate(self.entries):
            for number in entry.positions("tool_call.done"):
                where = answers.get((at, number))
                if where is None:
                    call_id = entry.items[number]["tool_call_id"]
                    result = {"type": "tool_result.done", "text": NO_RESULT, "tool_call_id": call_id}
                    self.note(entry, "an open tool call answered as interrupted")
                elif where[0] == at + 1:
                    continue
                else:
                    gone.add(where)
                    self.entries[where[0]].moved = True
                    result = self.entries[where[0]].items[where[1]]
                    self.note(entry, "a tool result moved up to its call")
                additions.setdefault(at + 1, []).append(result)
        losers = {at for at, _ in gone}
        padded: list[_Entry | None] = [*self.entries, None]
        self.entries = []
        for at, current in enumerate(padded):
            added = additions.get(at, [])
            if added and (current is None or current.role != "user"):
                self.entries.append(_Entry(at - 1, {"role": "user", "content_items": added}))
                added = []
            if current is not None:
                if added or at in losers:
                    kept = [item for number, item in enumerate(current.items) if (at, number) not in gone]
                    current.items = [*added, *kept]
                self._results_first(current)
                self.entries.append(current)

    def _results_first(self, entry: _Entry) -> None:
        results = entry.positions("tool_result.done")
        untouched = entry.own and entry.items is entry.message["content_items"]
        if not untouched and results and results != list(range(len(results))):
            others = [item for item in entry.items if item["type"] != "tool_result.done"]
            entry.items = [*(entry.items[number] for number in results), *others]
            self.note(entry, "tool results put before the rest")

    def rename_calls(self) -> None:
        answers, alone = self._answers()
        calls = [
            (at, number, entry.items[number], entry.own)
            for at, entry in enumerate(self.entries)
            for number in entry.positions("tool_call.done")
        ]
        traits = self.traits
        taken = {item["tool_call_id"] for *_, item, own in calls if own}
        names = set() if traits.named_ids else {item["name"] for *_, item, _ in calls}
        new_id = NewIds(traits.id_characters, traits.id_length, traits.unique_ids, taken, names)
        self.ids = new_id.originals
        renamed: dict[tuple[int, int], str] = {}
        for at, number, item, own in calls:
            if not own:
                renamed[at, number] = new = new_id(item["tool_call_id"])
                if (at, number) in answers:
                    renamed[answers[at, number]] = new
        for at, number in alone:
            if not self.entries[at].own:
                renamed[at, number] = new_id(self.entries[at].items[number]["tool_call_id"])
        for (at, number), new in sorted(renamed.items()):
            entry = self.entries[at]
            item = entry.items[number]
            if item["tool_call_id"] != new:
                entry.items = [*entry.items[:number], {**item, "tool_call_id": new}, *entry.items[number + 1 :]]
                self.note(entry, f"the id of a {_kind(item)} changed to {new!r}")

    # -- messages --------------------------------------------------------------------------------

    def leave_out_messages(self) -> None:
        for entry in list(self.entries):
            if entry.index == self.last and not (entry.moved and not entry.items):
                if not entry.items:  # the vendor may say what is wrong with it
                    entry.items, entry.hopeless = entry.message["content_items"], True
                continue
            if entry.own and entry.items:
                continue
            silent = all(_kind(item) in ("thinking", "inline_thinking") for item in entry.items)
            if silent and (not entry.items or not self.traits.silent_messages):
                self.entries.remove(entry)
                self.note(entry, "left out, since there is nothing to send in it")

    def order_roles(self) -> None:
        first = self.entries[0] if self.entries else None
        if self.traits.user_first and first is not None and first.role != "user" and not first.own:
            opening = {"role": "user", "content_items": [{"type": "text.done", "text": BEGINNING}]}
            self.entries.insert(0, _Entry(0, opening))
            self.note(self.entries[0], "a user message put in front")
        if self.traits.alternating:
            entries: list[_Entry] = []
            for entry in self.entries:
                if entries and entries[-1].role == entry.role and not entry.hopeless:
                    entries[-1].items = [*entries[-1].items, *entry.items]
                    self.note(entry, "joined to the message before it, which has the same role")
                else:
                    entries.append(entry)
            self.entries = entries


def _kind(item: Item) -> str:
    return str(item["type"]).partition(".")[0]


def _text(text: str) -> Item:
    return {"type": "text.done", "text": text}


def _is_thoughtless(items: list[Item]) -> bool:
    """Whether there are calls, and no thinking that says anything."""
    calls = any(item["type"] == "tool_call.done" for item in items)
    return calls and not any(item["type"] == "thinking.done" and item["thinking"] for item in items)
