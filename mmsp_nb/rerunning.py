"""A question asked again: its new turn takes the old one's place, and what was is kept as a branch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.errors import UnsupportedOperationError
from mmsp_nb.tree import _Step
from mmsp_nb.turns import Turn

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

__all__ = ["in_place_of", "last_question", "wish"]


@contextlib.contextmanager
def in_place_of(chat: Conversation, old: Sequence[Turn]) -> Iterator[None]:
    """Around a question of ``chat`` that takes the place of ``old``, which are turns of the branch in use.

    The question is sent with what stood before them. Afterwards the turns after them follow the new one, marked stale;
    not so when the new one waits for a word or stands at a limit: then it can be gone on with. The branch as it was
    stays reachable as ``NAME~1``, ``NAME~2``, ... unless nothing but failures would be in it. One `undo` takes all this
    back. When no turn comes of the question, nothing has changed.
    """
    chat._idle("ask again")
    turns, before = list(chat.turns), chat._state()
    gone = chat._with_continuations(old)
    first = min(turns.index(turn) for turn in gone)
    later = [turn for turn in turns[first:] if turn not in gone]
    chat.turns = chat._branches[chat.branch] = turns[:first]
    chat._load_history()
    try:
        yield
    finally:
        made = chat.turns[first:]
        if not made:
            chat._restore(before)
            chat._load_history()
        else:
            last = made[-1]
            goes_on = last.state == "done" and (last.pending is not None or bool(last.held))
            if not goes_on:
                chat.turns += later
            if any(turn.state != "failed" for turn in gone) or (goes_on and later):
                chat._branches[_free(chat)] = turns
            chat._find_stale()
            chat._load_history()
            chat._done.append(_Step(before, chat._state(), tuple(made)))
            chat._undone.clear()
        chat._tell(None, None)


def last_question(chat: Conversation) -> Turn:
    """The turn that began what the last turns are about: those that only went on from it are left out."""
    if not chat.turns:
        raise UnsupportedOperationError("nothing has been asked yet", operation="retry")
    index = len(chat.turns) - 1
    while index and chat.turns[index].resumes:
        index -= 1
    return chat.turns[index]


def wish(turn: Turn) -> dict[str, Any]:
    """With what `turn` was asked, as arguments of `Conversation.ask`."""
    return {
        "config": dict(turn.config),
        "tools": turn.asked.get("tools"),
        "policy": turn.asked.get("policy"),
        "type": None if turn.typed is None else turn.typed.type,
    }


def _free(chat: Conversation) -> str:
    number = 1
    while (name := f"{chat.branch}~{number}") in chat._branches:
        number += 1
    return name
