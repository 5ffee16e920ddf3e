"""`diff`: two conversations, or two branches of one, turn by turn."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mmsp_nb import files
from mmsp_nb.masking import mask_keys
from mmsp_nb.turns import Turn

__all__ = ["Difference", "Pair", "diff"]

_QUIET = ("created_at", "origin")


@dataclass(frozen=True)
class Pair:
    """Two turns beside each other; ``removed`` is only in a, ``added`` only in b."""

    status: Literal["same", "changed", "removed", "added"]
    a: Turn | None
    b: Turn | None

    def lines(self) -> list[str]:
        """What differs, as lines that begin with ``-``, ``+`` or a space."""
        a, b = (_lines(turn) if turn is not None else [] for turn in (self.a, self.b))
        return [line for line in difflib.ndiff(a, b) if not line.startswith("?")]


@dataclass(frozen=True)
class Difference(Sequence[Pair]):
    """The pairs of turns of two conversations, in order. It is true when something differs."""

    pairs: tuple[Pair, ...]
    settings: tuple[str, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.pairs[index]

    def __len__(self) -> int:
        return len(self.pairs)

    def __bool__(self) -> bool:
        return bool(self.settings) or any(pair.status != "same" for pair in self.pairs)

    def __str__(self) -> str:
        text = mask_keys("\n".join(self._text())) if self else "no difference"
        return text.encode("utf-8", "replace").decode("utf-8")  # half an emoji cannot be printed

    __repr__ = __str__

    def _text(self) -> Iterator[str]:
        yield from self.settings
        same = 0
        for number, pair in enumerate(self.pairs, 1):
            if pair.status == "same":
                same += 1
                continue
            if same:
                yield f"  {same} turn{'' if same == 1 else 's'} the same"
                same = 0
            yield f"turn {number}: {pair.status}"
            yield from (f"  {line}" for line in pair.lines())
        if same:
            yield f"  {same} turn{'' if same == 1 else 's'} the same"


def diff(a: Any, b: Any) -> Difference:
    """Compare two conversations turn by turn: what was asked, said, called and returned, by which model.

    Times and ids of turns don't count. ``a`` and ``b`` are Conversations, lists of turns (``chat.branches["main"]``),
    or paths of files that `mmsp_nb.load` reads.
    """
    one, other = _turns(a), _turns(b)
    keys_one, keys_other = ([files.dumped(_essence(turn)) for turn in turns] for turns in (one, other))
    pairs: list[Pair] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, keys_one, keys_other, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += [Pair("same", x, y) for x, y in zip(one[i1:i2], other[j1:j2], strict=True)]
            continue
        common = min(i2 - i1, j2 - j1)
        pairs += [Pair("changed", one[i1 + n], other[j1 + n]) for n in range(common)]
        pairs += [Pair("removed", turn, None) for turn in one[i1 + common : i2]]
        pairs += [Pair("added", None, turn) for turn in other[j1 + common : j2]]
    return Difference(tuple(pairs), tuple(_settings(a, b)))


def _turns(value: Any) -> list[Turn]:
    if hasattr(value, "turns"):
        return list(value.turns)
    if isinstance(value, list | tuple) and all(isinstance(turn, Turn) for turn in value):
        return list(value)
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return list(files.load(value).turns)
    raise TypeError(f"diff() compares conversations, lists of turns and files, not {type(value).__name__}")


def _settings(a: Any, b: Any) -> Iterator[str]:
    if not (hasattr(a, "turns") and hasattr(b, "turns")):
        return
    for name in ("model", "system", "max_turns"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            yield f"{name}: {one!r} -> {other!r}"


def _essence(turn: Turn) -> dict[str, Any]:
    """What makes a turn another one."""
    messages = [{key: value for key, value in message.items() if key not in _QUIET} for message in turn.messages]
    error = None if turn.error is None else str(turn.error)
    return {"model": turn.model, "state": turn.state, "messages": messages, "hidden": turn.hidden, "error": error}


def _lines(turn: Turn) -> list[str]:
    from mmsp_nb.exports import text_of

    lines = [f"model: {turn.model}"]
    if turn.state != "done" or turn.hidden:
        lines.append(f"state: {turn.state}{', hidden' if turn.hidden else ''}")
    for message in turn.messages:
        for item in message["content_items"]:
            label, text = text_of(message, item)
            lines += [f"{label}: {line}" for line in text.split("\n")]
    if turn.error is not None:
        lines.append(f"error: {turn.error}")
    return lines
