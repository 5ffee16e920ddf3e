"""Questions asked again: a new turn takes the old one's place, and what was is kept as a branch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from mmsp_nb import choosing, gauge
from mmsp_nb.money import BudgetExceededError
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import UnsupportedOperationError
from mmsp_nb.tree import _Step
from mmsp_nb.turns import Turn

if TYPE_CHECKING:
    from mmsp_nb.answer import Answer
    from mmsp_nb.conversation import Conversation

__all__ = ["Announce", "Expected", "Rerunning", "in_place_of", "last_question", "wish"]

Announce = Callable[[Turn, int, int], None]
"""Told of each question before it is asked again: its old turn, its number from 1 on, and how many there are."""


@dataclass(frozen=True)
class Expected:
    """What asking again would take, going by what the same questions took before.

    Attributes:
        turns: The questions, as their old turns.
        tokens: In and out together.
        price: US dollars by the list price of the model that answers now; None when it is not known.
    """

    turns: list[Turn]
    tokens: int
    price: Decimal | None


class Rerunning:
    """Asking again what is stale. `Conversation` inherits it."""

    turns: list[Turn]

    @property
    def stale(self) -> list[Turn]:
        """The questions of this branch that were answered on a history that has changed since, in order.

        So is one without a whole answer right before such a question, as a rerun that was stopped leaves it. Hidden
        turns are left alone.
        """
        found: list[Turn] = []
        groups = _groups(self.turns)
        for number, group in enumerate(groups):
            after = groups[number + 1] if number + 1 < len(groups) else []
            unanswered = group[-1].state in ("failed", "partial") and any(turn.stale for turn in after)
            if any(turn.stale for turn in group) or unanswered:
                found.append(group[0])
        return found

    def expect_rerun(self) -> Expected:
        """What `rerun_stale` would ask, and about what it would cost. Nothing is sent."""
        stale = self.stale
        cost = choosing.cost_of(cast("Conversation", self).client)
        price: Decimal | None = None if cost is None else Decimal(0)
        count = 0
        for turn in stale:
            used = turn.usage or {"prompt_tokens": sum(map(gauge.estimate, turn.messages))}
            count += tokens.totals(used).total or 0
            one = None if cost is None else cost(used)
            price = None if price is None or one is None else price + one
        return Expected(stale, count, price)

    def rerun_stale(self, *, announce: Announce | None = None) -> list[Answer]:
        """Ask every question of `stale` again, in order, each in place of its old turn, as it was asked then.

        What stood there before stays reachable as one branch, ``NAME~1`` or the next free number, and one `undo` takes
        all of it back. Every answer is complete before the next question goes out, so that it can be interrupted, or
        fail, at any moment: the conversation is valid then, the rest is still stale, and calling it again goes on.
        It also ends at an answer that waits for a person's word, or that has reached a limit.

        Args:
            announce: Called before each question.

        Returns:
            The new answers; an empty list when nothing is stale.

        Raises:
            As `ask`.
        """
        chat, answers = cast("Conversation", self), list["Answer"]()
        with _Rerun(chat, announce) as rerun:
            for turn in rerun:
                with rerun.place(turn):
                    answers.append(chat.ask([*turn.messages[:1]], **wish(turn)))
        return answers

    async def rerun_stale_async(self, *, announce: Announce | None = None) -> list[Answer]:
        """`rerun_stale` for async code."""
        chat, answers = cast("Conversation", self), list["Answer"]()
        with _Rerun(chat, announce) as rerun:
            for turn in rerun:
                with rerun.place(turn):
                    answers.append(await chat.ask_async([*turn.messages[:1]], **wish(turn)))
        return answers


class _Rerun:
    """One run through what is stale. Iterating gives the next question as long as there is one."""

    def __init__(self, chat: Conversation, announce: Announce | None) -> None:
        self._chat, self._announce = chat, announce
        self._made: list[Turn] = []
        self._kept = False

    def __enter__(self) -> _Rerun:
        chat = self._chat
        chat._idle("ask again")
        chat._follow()  # turns may have been changed by hand
        self._before, self._steps = chat._state(), len(chat._done)
        return self

    def __exit__(self, *error: object) -> None:
        """Let one `undo` take all of it back."""
        chat = self._chat
        if len(chat._done) - self._steps > 1:
            del chat._done[self._steps :]
            chat._done.append(_Step(self._before, chat._state(), tuple(self._made)))

    def __iter__(self) -> Iterator[Turn]:
        number = 0
        while left := [turn for turn in self._chat.stale if turn not in self._made]:
            number += 1
            if self._announce is not None:
                self._announce(left[0], number, number - 1 + len(left))
            yield left[0]

    @contextlib.contextmanager
    def place(self, turn: Turn) -> Iterator[None]:
        """Around one question: its place, and the one branch in which all old turns are kept."""
        chat = self._chat
        before, branches = {id(each) for each in chat.turns}, len(chat._branches)
        try:
            with in_place_of(chat, [turn], keep=not self._kept):
                yield
        finally:
            self._made += [each for each in chat.turns if id(each) not in before]
            self._kept = self._kept or len(chat._branches) > branches


def _groups(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Each question with the turns that only went on from it; without hidden turns and summaries."""
    groups: list[list[Turn]] = []
    for turn in turns:
        if turn.hidden or turn.summary:
            continue
        if turn.resumes and groups:
            groups[-1].append(turn)
        else:
            groups.append([turn])
    return groups


@contextlib.contextmanager
def in_place_of(chat: Conversation, old: Sequence[Turn], *, keep: bool = True) -> Iterator[None]:
    """Around a question of ``chat`` that takes the place of ``old``, which are turns of the branch in use.

    The question is sent with what stood before them. Afterwards the turns after them follow the new one, marked stale;
    not so when the new one waits for a word or stands at a limit: then it can be gone on with. The branch as it was
    stays reachable as ``NAME~1``, ``NAME~2``, ... unless nothing but failures would be in it, or not ``keep``. One
    `undo` takes all this back. When nothing is sent, since no turn comes of the question or no budget allows it,
    nothing has changed. The new turn belongs to the cell that had made the old one.
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
        for turn in made:
            turn.cell = gone[0].cell or turn.cell
        if all(isinstance(turn.error, BudgetExceededError) for turn in made):
            chat._restore(before)
            chat._load_history()
        else:
            last = made[-1]
            goes_on = last.state == "done" and (last.pending is not None or bool(last.held))
            if not goes_on:
                chat.turns += later
            if keep and (any(turn.state != "failed" for turn in gone) or (goes_on and later)):
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
