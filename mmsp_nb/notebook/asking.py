"""One ``%%mmsp`` cell or ``%mmsp ask``: options and text become a question, the question becomes an answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.suggestions import did_you_mean

from .chats import Chats
from .deciding import Decision
from .failures import calm, stopped
from .host import quiet
from .options import OptionError, Options
from .prompt import expand

if TYPE_CHECKING:
    from mmsp_nb.answer import Answer
    from mmsp_nb.conversation import Conversation

__all__ = ["Asking"]

LAST = "_mmsp"
"""The variable that holds the last Answer."""


@dataclass
class Asking:
    """A question that is ready to be sent. Making one raises OptionError when something typed is wrong.

    Args:
        chats: Where its conversation is.
        options: What the user typed. ``options.prompt`` is empty to go on with what is pending.
        namespace: The user's variables: read by ``{{...}}``, written for ``--out``.
        first_line: The line of the cell on which the prompt begins.
        decision: A word about calls that wait, in place of a prompt.
    """

    chats: Chats
    options: Options
    namespace: dict[str, Any]
    first_line: int = 1
    decision: Decision | None = None
    chat: Conversation = field(init=False)
    prompt: Any = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        self.prompt = expand(options.prompt, self.namespace, self.first_line) if options.prompt else None
        if options.system:
            system = expand(options.system, self.namespace)
            if not isinstance(system, str):
                raise OptionError("--system takes text, and this expression is a picture")
            options.system = system
        place = self.chats.renew if options.new else self.chats.get
        self.chat = place(options.chat, model=options.model, client=options.client)
        if options.chat:
            self.chats.use(options.chat)
        self.tools = None if options.tools is None else self._tools(options.tools)
        self.type = None if options.type is None else _type(options.type, self.namespace)
        self.policy = None if options.ask is None else self.chat.policy.asking(options.ask)

    def _given(self) -> dict[str, Any]:
        return {"config": self.options.config(), "tools": self.tools, "type": self.type, "policy": self.policy}

    def run(self) -> Answer:
        """Ask and wait by blocking."""
        with self._asking():
            decision = self.decision
            if decision is None:
                return self.chat.ask(self.prompt, **self._given())
            if decision.approved:
                return self.chat.approve(*decision.names, arguments=decision.arguments)
            return self.chat.deny(decision.reason)

    async def arun(self) -> Answer:
        """Ask and wait by awaiting, as the whole of a cell: its cancellation is the kernel's way to interrupt it."""
        from mmsp_nb.protocol.errors import AbortError

        began = time.monotonic()
        with self._asking():
            try:
                decision = self.decision
                if decision is None:
                    return await self.chat.ask_async(self.prompt, **self._given())
                if decision.approved:
                    return await self.chat.approve_async(*decision.names, arguments=decision.arguments)
                return await self.chat.deny_async(decision.reason)
            except AbortError:
                raise
            except asyncio.CancelledError:
                raise stopped(time.monotonic() - began) from None

    def describe(self) -> str:
        """What would be sent, for ``--dry-run``."""
        tools = self.chat.tools if self.tools is None else self.tools
        config = {**self.chat.config, **self.options.config()}
        lines = [f"model: {self.chat.model}", f"turns before: {len(self.chat.turns)}"]
        lines += [f"{key}: {value}" for key, value in config.items() if value is not None]
        lines.append(f"tools: {', '.join(tools.names()) or 'none'}")
        if self.type is not None:
            lines.append(f"type: {self.options.type}")
        parts = self.prompt if isinstance(self.prompt, list) else [self.prompt or ""]
        text = "".join(part if isinstance(part, str) else "[picture]" for part in parts)
        return "\n".join([*lines, "prompt:", text])

    def _tools(self, names: list[str]) -> Any:
        from mmsp_nb.tools import ToolDefinitionError, ToolRegistry

        try:
            return ToolRegistry(*names)
        except ToolDefinitionError as error:
            raise OptionError(str(error)) from None

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Around the request: this cell's limit, silence if wanted; afterwards the variables, whatever happened."""
        before = self.chat.turns[-1] if self.chat.turns else None
        limit = self.chat.max_turns
        silence = quiet.set(self.options.quiet)
        try:
            self.chat.max_turns = self.options.max_turns or limit
            yield
        except Exception as error:
            raise calm(error) from error.__cause__
        finally:
            quiet.reset(silence)
            self.chat.max_turns = limit
            self._bind(before)

    def _bind(self, before: Any) -> None:
        from mmsp_nb.answer import Answer

        turn = self.chat.turns[-1] if self.chat.turns else None
        if turn is None or turn is before:
            return
        answer = Answer(turn)
        self.namespace[LAST] = answer
        if self.options.out:
            self.namespace[self.options.out] = answer


def _type(written: str, namespace: dict[str, Any]) -> Any:
    """The type that ``--type`` names: a name or an expression such as ``list[Invoice]``, in the user's namespace."""
    import typing

    from mmsp_nb.typed import TypedAnswer

    known = {name: getattr(typing, name) for name in ("Literal", "Annotated", "Optional", "Union", "Any")}
    try:
        found = eval(written, {**known, **namespace})  # the user's own words, as in any cell
        TypedAnswer(found)
    except NameError as error:
        names = [name for name, value in namespace.items() if isinstance(value, type) and not name.startswith("_")]
        raise OptionError(f"--type {written}: {error}{did_you_mean(error.name, names)}") from None
    except TypeError as error:
        raise OptionError(f"--type {written}: {error}") from None
    except Exception as error:
        raise OptionError(f"--type {written} is no type: {type(error).__name__}: {error}") from None
    return found
