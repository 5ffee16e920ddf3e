"""One ``%%mmsp`` cell or ``%mmsp ask``: options and text become a question, the question becomes an answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mmsp_nb.interrupts import unbroken
from mmsp_nb.protocol.suggestions import did_you_mean

from . import editing, resolving
from .chats import Chats
from .deciding import Decision
from .failures import calm, stopped
from .host import form, quiet
from .options import OptionError, Options
from .prompt import expand
from .sources import Source

if TYPE_CHECKING:
    from decimal import Decimal

    from mmsp_nb.answer import Answer
    from mmsp_nb.conversation import Conversation

__all__ = ["Asking", "Run"]

LAST = "_mmsp"
"""The variable that holds the last Answer."""


@dataclass(frozen=True)
class Run:
    """One run of a ``%%mmsp`` cell.

    Attributes:
        cell: The cell's id, where the front end tells it.
        serial: The number of the run.
        text: The options and the prompt as they were typed.
    """

    cell: str | None
    serial: int
    text: str


@dataclass
class Asking:
    """A question that is ready to be sent. Making one raises OptionError when something typed is wrong.

    Args:
        chats: Where its conversation is.
        options: What the user typed. ``options.prompt`` is empty to go on with what is pending.
        namespace: The user's variables: read by ``{{...}}``, written for ``--out``.
        first_line: The line of the cell on which the prompt begins.
        decision: A word about calls that wait, in place of a prompt.
        cell: The run of the cell that asks: its turn takes the place of the one that the cell has made before.
        ready: A prompt that is not looked at for expressions, in place of the options' own.
        again: Whether the last question is asked again.
        signal: An AbortSignal that can stop it; it is set for one that is asked in the background.
        local: The variables of the function that asks: they are read before those of the namespace.
    """

    chats: Chats
    options: Options
    namespace: dict[str, Any]
    first_line: int = 1
    decision: Decision | None = None
    cell: Run | None = None
    ready: str | None = None
    again: bool = False
    signal: Any = None
    local: Mapping[str, Any] | None = None
    chat: Conversation = field(init=False)
    prompt: Any = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        known = self._known()
        self.source = None if options.edit is None else self._source()
        self.prompt = expand(options.prompt, known, self.first_line) if options.prompt else self.ready
        resolving.resolve(options, known)
        images = [resolving.image(value, known) for value in options.image]
        files = [resolving.file_text(path) for path in options.file]
        if images or files:
            if self.prompt is None and not self.again:
                raise OptionError("--image and --file go beside a prompt")
            self.prompt = _beside(self.prompt, files, images)
        if self.source is not None:
            self.prompt = _beside(self.prompt, [editing.instruction(self.source)], [])
        client = None if options.client is None else resolving.client(options.client, self.names)
        if client is not None and (options.model or options.client_type):
            raise OptionError("give --client, or --model and --client-type: a client has its model")
        named: dict[str, Any] = {"model": options.model, "client": options.client_type, "using": client}
        if options.dry_run:
            self.chat = self.chats.glimpse(options.chat, new=options.new, **named)
        else:
            begin = self.chats.renew if options.new else self.chats.get
            self.chat = begin(options.chat, **named)
            if options.chat:
                self.chats.use(options.chat)
        self._check_budget()
        self.tools = None if options.tools is None else self._tools(options.tools)
        self.type = None if options.type is None else _type(options.type, self.names)
        self.policy = None if options.ask is None else self.chat.policy.asking(self._named(options.ask))
        self._wish: dict[str, Any] = {}
        if self.again:
            self._ask_again()
        if options.format == "code" and (self.type or self._wish.get("type")):
            raise OptionError("--type and --format code do not go together: an answer of a type is JSON, no code")

    @property
    def names(self) -> dict[str, Any]:
        """The variables that can be read."""
        return {**self.namespace, **self.local} if self.local else self.namespace

    def _known(self) -> dict[str, Any]:
        """The user's variables, and our own names `Err`, `cell` and `In` if an expression speaks of them.

        What the user has called so comes first; but `In` is what was typed, before magics were rewritten.
        """
        cells, mine = self.chats.cells, self.names
        if cells is None:
            return mine
        written = " ".join([self.options.prompt, *(value for _, value in self.options.deferred)])
        more: dict[str, Any] = {}
        if "Err" in written and "Err" not in mine:
            more["Err"] = cells.failures
        if "cell(" in written and not callable(mine.get("cell")):
            more["cell"] = cells.sources
        if "In[" in written and cells.sources.is_history(mine.get("In")):
            more["In"] = _Typed(cells.sources.history())
        if "Out[" in written and isinstance(mine.get("Out"), dict):
            more["Out"] = _Values(mine["Out"])
        return {**mine, **more} if more else mine

    def _source(self) -> Source:
        """The cell that ``--edit`` names."""
        target = str(self.options.edit)
        if "{{" in target:
            raise OptionError("--edit takes In[7], or the id or tag of a cell, as it is")
        if self.chats.cells is None or not self.options.prompt:
            raise OptionError("--edit needs a prompt that says what to change")
        try:
            return self.chats.cells.sources.find(target)
        except OptionError as error:
            raise OptionError(f"--edit {target}: {error}") from None

    def _check_budget(self) -> None:
        """A limit of cost for a model without prices could not be kept; models on this machine cost nothing."""
        from mmsp_nb import choosing, local

        model = self.chat.model
        if self.options.budget and not self.options.compare and choosing.prices(self.chat.client) is None:
            if not local.is_local(model):
                raise OptionError(f"--budget cannot be kept: the prices of {model} are not known; see --max-calls")
            self.options.budget = None

    def limit(self, chat: Conversation) -> None:
        """Set the limits of this cell to ``chat``."""
        options = self.options
        chat.max_turns = options.max_turns or self.chat.max_turns
        chat.max_calls = options.max_calls or self.chat.max_calls
        chat.max_cost = self.max_cost(chat)

    def max_cost(self, chat: Conversation) -> Decimal | None:
        """What this cell may cost in ``chat``; a limit of its own only where prices are known."""
        from mmsp_nb import choosing

        budget = self.options.budget
        return budget if budget and choosing.prices(chat.client) is not None else self.chat.max_cost

    def _ask_again(self) -> None:
        """Take the prompt and the wishes of the last question; what is given now comes first."""
        from mmsp_nb.rerunning import last_question, wish

        if not self.chat.turns:
            raise OptionError("there is nothing to ask again: this chat has no turn")
        turn = last_question(self.chat)
        self.prompt = [*turn.messages[:1], *(self.prompt or [])]
        self._wish = wish(turn)

    def _given(self) -> dict[str, Any]:
        given = {"signal": self.signal, "tools": self.tools, "type": self.type, "policy": self.policy}
        config = {**self._wish.get("config", {}), **self.options.config()}
        return {**self._wish, **{key: value for key, value in given.items() if value is not None}, "config": config}

    def _replaced(self) -> list[Any]:
        """The turns whose place the new one takes.

        Those that the same cell has made in an earlier run. Where the front end tells no ids: the last one, if the
        same text was asked and no complete answer came. So a notebook that runs from top to bottom always gives
        the same conversation, whoever runs it.
        """
        from mmsp_nb.rerunning import last_question

        turns, made = self.chat.turns, self.chats.made
        if self.decision is not None or self.prompt is None or not turns:
            return []
        if self.again:
            return [last_question(self.chat)]
        if self.cell is None:
            return []
        if self.cell.cell is not None:
            mine = [turn for turn in turns if turn.cell == self.cell.cell]
            return [turn for turn in mine if made.get(turn.id, ("", -1))[1] != self.cell.serial]
        last = turns[-1]
        text, serial = made.get(last.id, ("", -1))
        incomplete = last.state in ("failed", "partial") and last.cell is None
        return [last] if incomplete and text == self.cell.text and serial != self.cell.serial else []

    def run(self) -> Answer:
        """Ask and wait by blocking."""
        if self.signal is None:
            self.chats.behind.wait(self.chat)
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
        try:
            await self.chats.behind.wait_async(self.chat)
        except asyncio.CancelledError:
            raise stopped(time.monotonic() - began) from None
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
        from .dryrun import describe

        return describe(self)

    def _tools(self, names: list[str]) -> Any:
        from mmsp_nb.tools import ToolDefinitionError, ToolRegistry

        try:
            return ToolRegistry(*names)
        except ToolDefinitionError as error:
            raise OptionError(str(error)) from None

    def _named(self, rules: list[str]) -> list[str]:
        """The names and patterns of ``--ask``. One that fits no tool is refused: its tool would run unasked."""
        known = (self.chat.tools if self.tools is None else self.tools).names()
        for rule in rules:
            if rule != "*" and not any(fnmatchcase(name, rule) for name in known):
                raise OptionError(f"--ask: there is no tool {rule!r}{did_you_mean(rule, known)}")
        return rules

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Around the request: this cell's limits, silence if wanted; afterwards the variables, whatever happened."""
        from mmsp_nb.rerunning import in_place_of

        old = self._replaced()
        before = {id(turn) for turn in self.chat.turns}
        limits = {name: getattr(self.chat, name) for name in ("max_turns", "max_calls", "max_cost")}
        shown = self.options.format or ("markdown" if self.type is None else "fields")
        silence, shape = quiet.set(self.options.quiet), form.set(shown)
        try:
            self.limit(self.chat)
            with in_place_of(self.chat, old) if old else contextlib.nullcontext():
                yield
        except Exception as error:
            raise calm(error) from error.__cause__
        finally:
            with unbroken():
                quiet.reset(silence)
                form.reset(shape)
                for name, value in limits.items():
                    setattr(self.chat, name, value)
                self._bind(before)

    def _bind(self, before: set[int]) -> None:
        from mmsp_nb.answer import Answer

        turn = next((turn for turn in reversed(self.chat.turns) if id(turn) not in before), None)
        if turn is None:
            return
        if self.cell is not None:
            self.chats.made[turn.id] = self.cell.text, self.cell.serial
        answer = Answer(turn)
        if answer.complete and self.options.format == "code":
            self.chats.offer(answer.text)
        if answer.complete and self.source is not None:
            self.chats.propose(answer.text, self.source)
        self.namespace[LAST] = answer
        if self.options.out:
            self.namespace[self.options.out] = answer


class _Typed(list[str]):
    """What was typed, by execution."""

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            last = f": the last one is In[{len(self) - 1}]" if len(self) > 1 else " yet"
            raise OptionError(f"there is no In[{index}]{last}") from None


class _Values(dict[int, Any]):
    """What executions gave."""

    def __missing__(self, key: Any) -> Any:
        known = [f"Out[{number}]" for number in list(self)[-3:]]
        raise OptionError(
            f"there is no Out[{key}]; the last ones are {', '.join(known)}" if known else "there is no Out yet"
        )


def _beside(prompt: Any, files: list[str], images: list[Any]) -> Any:
    """The prompt with files below it and pictures beside it."""
    parts = list(prompt) if isinstance(prompt, list) else [prompt] if prompt else []
    text = "\n\n".join(files)
    if text and parts and isinstance(parts[-1], str):
        parts[-1] = f"{parts[-1].rstrip(chr(10))}\n\n{text}"
    elif text:
        parts.append(text)
    return parts[0] if len(parts) == 1 and not images else [*parts, *images]


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
        said = error.msg if isinstance(error, SyntaxError) else error
        raise OptionError(f"--type {written} is no type: {type(error).__name__}: {said}") from None
    return found
