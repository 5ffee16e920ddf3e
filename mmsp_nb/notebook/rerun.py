"""``%mmsp rerun stale``: what is stale is asked again, each answer live in the cell, one after the other."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mmsp_nb.money import dollars
from mmsp_nb.protocol.errors import AbortError
from mmsp_nb.protocol.suggestions import did_you_mean

from .chats import Chats
from .failures import calm, stopped
from .options import OptionError
from .sanitize import single_line
from .secrets import mask

if TYPE_CHECKING:
    from mmsp_nb.answer import Answer
    from mmsp_nb.conversation import Conversation
    from mmsp_nb.turns import Turn

__all__ = ["Rerun", "begin"]

WHAT = ("stale",)
DRY = "--dry-run"


def begin(words: list[str], chats: Chats, namespace: dict[str, Any]) -> Rerun | str:
    """What ``%mmsp rerun WORDS`` begins; or a text, when nothing is to be asked. OptionError for other words."""
    named = [word for word in words if word != DRY]
    for word in named:
        if word not in WHAT:
            near = did_you_mean(word, [*WHAT, DRY]) or ": it asks again what is stale, %mmsp rerun stale"
            raise OptionError(f"%mmsp rerun cannot use {word!r}{near}")
    if len(named) != 1:
        raise OptionError(
            "say what to ask again: %mmsp rerun stale, or %mmsp rerun stale --dry-run to see what that is"
        )
    chat = chats.find()
    if chat is None or not chat.stale:
        return "nothing is stale: every answer knows what stands before it"
    return plan(chat) if DRY in words else Rerun(chats, chat, namespace)


def plan(chat: Conversation) -> str:
    """What would be asked, and about what it would cost."""
    expected = chat.expect_rerun()
    turns = list(chat.turns)
    lines = [f"{_head(chat)}:"]
    lines += [f"  turn {turns.index(turn) + 1}: {single_line(turn.prompt, 60)}" for turn in expected.turns]
    return mask("\n".join([*lines, "nothing was sent; %mmsp rerun stale does it"]))


def _head(chat: Conversation) -> str:
    expected = chat.expect_rerun()
    price = "price unknown" if expected.price is None else f"about {dollars(expected.price)}"
    count = len(expected.turns)
    return f"{count} stale turn{'' if count == 1 else 's'} with {chat.model}, about {expected.tokens:,} tokens, {price}"


class Rerun:
    """On its way: `run` or `arun`, once."""

    def __init__(self, chats: Chats, chat: Conversation, namespace: dict[str, Any]) -> None:
        self._chats, self._chat, self._namespace = chats, chat, namespace
        self._asked = 0
        self._known = {id(turn) for turn in chat.turns}
        self._branches = set(chat.branches)

    def run(self) -> None:
        """Ask and wait by blocking."""
        self._chats.behind.wait(self._chat)
        print(mask(f"asking again: {_head(self._chat)}"))
        try:
            answers = self._chat.rerun_stale(announce=self._announce)
        except BaseException as error:
            raise self._ended(error) from error.__cause__
        self._done(answers)

    async def arun(self) -> None:
        """The same, awaiting."""
        began = time.monotonic()
        try:
            await self._chats.behind.wait_async(self._chat)
            print(mask(f"asking again: {_head(self._chat)}"))
            answers = await self._chat.rerun_stale_async(announce=self._announce)
        except BaseException as error:
            ended = self._ended(error)
            if isinstance(error, asyncio.CancelledError) and not isinstance(error, AbortError):
                raise stopped(time.monotonic() - began) from None
            raise ended from error.__cause__
        self._done(answers)

    def _announce(self, turn: Turn, number: int, count: int) -> None:
        self._asked = number
        print(mask(f"{number} of {count}: {single_line(turn.prompt, 70)}"), flush=True)

    def _ended(self, error: BaseException) -> BaseException:
        self._bind()
        if left := len(self._chat.stale):
            print(f"{left} still stale; %mmsp rerun stale goes on")
        elif any(id(turn) not in self._known for turn in self._chat.turns):
            print("%mmsp retry asks the last one again")
        return calm(error) if isinstance(error, Exception) else error

    def _done(self, answers: list[Answer]) -> None:
        self._bind()
        new = [name for name in self._chat.branches if name not in self._branches]
        before = f"; what was there before is branch {new[0]}" if new else ""
        if answers and not answers[-1].complete:
            print(f"stopped at an answer that is not complete{before}")
        else:
            print(f"asked {len(answers)} again{before}; %mmsp undo takes it back")

    def _bind(self) -> None:
        from mmsp_nb.answer import Answer

        from .asking import LAST

        turn = next((turn for turn in reversed(self._chat.turns) if id(turn) not in self._known), None)
        if turn is not None:
            self._namespace[LAST] = Answer(turn)
