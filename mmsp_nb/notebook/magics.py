"""``%%mmsp`` and ``%mmsp``: what they are to IPython. What they mean is in `options`, `asking` and `commands`."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, needs_local_scope, no_var_expand
from traitlets import Bool, Float, Integer, TraitError, Unicode, observe, validate

from mmsp_nb.interrupts import blocking

from . import settings
from .chats import Chats, Defaults
from .commands import Commands, choice
from .deciding import Decision, parse
from .failures import unsent
from .host import Cells, connect_tools, in_kernel, is_live
from .offered import Code, Waiting
from .options import HELP, OptionError, Options, parse_cell, parse_line
from .page import page
from .rewriting import NAME
from .secrets import mask
from .sources import Source

__all__ = ["MMSPMagics"]

GO_ON = "Go on exactly where your last answer was cut off."
"""What ``%mmsp continue`` asks when the text of an answer was stopped, or came to the end of its budget."""


@magics_class
class MMSPMagics(Magics):
    """Ask language models from cells. ``%mmsp help`` lists what can be done."""

    model = Unicode(None, allow_none=True, help="Model id of new chats; None takes what is there.").tag(config=True)
    client_type = Unicode(None, allow_none=True, help="Client type, for model ids that do not tell.").tag(config=True)
    system = Unicode(None, allow_none=True, help="System prompt of new chats.").tag(config=True)
    max_turns = Integer(10, min=1, help="Requests that one cell may make; each round of tool calls is one.").tag(
        config=True
    )
    budget = Float(
        None, allow_none=True, min=0, help="US dollars that a new chat may cost, and the one in use; None for no limit."
    ).tag(config=True)
    kernel_budget = Float(
        None, allow_none=True, min=0, help="US dollars that all chats of this kernel may cost together; None: no limit."
    ).tag(config=True)
    mask_keys = Bool(
        True,
        help="Replace keys by *** in what is sent to models; False for keys that they are to read, such as of tests.",
    ).tag(config=True)
    live = Bool(
        None,
        allow_none=True,
        help="Stream answers (True), send final outputs only (False), or decide by itself (None).",
    ).tag(config=True)

    def __init__(self, shell: Any = None, **kwargs: Any) -> None:
        self.sources: dict[str, str] = {}  # of settings: where those come from that no config and nobody here has set
        faults = settings.drop_unusable(type(self), getattr(kwargs.get("parent"), "config", {}))
        super().__init__(shell=shell, **kwargs)
        self.faults = [*faults, *settings.apply(self)]
        self.chats: Chats = Chats(self._defaults, self._namespace)
        self.commands = Commands(self.chats, lambda: self.model, lambda: self.sources.get("model"))
        self.waiting: Waiting = Waiting()
        self.commands.apply = self._apply
        self.commands.live = lambda: in_kernel(self.shell) and is_live(self.live)
        type(self).mmsp.getdoc = lambda: page(self)  # what `%mmsp?` shows
        type(self).mmsp_cell.getdoc = lambda: page(self, cell=True)
        self.cells: Cells | None = None
        self._connect_chats()

    @property
    def _namespace(self) -> dict[str, Any]:
        namespace: dict[str, Any] = self.shell.user_ns
        return namespace

    def _defaults(self) -> Defaults:
        return Defaults(self.model, self.client_type, self.system, self.max_turns, self.budget, self.mask_keys)

    @validate("model", "client_type")
    def _usable(self, proposal: Any) -> Any:
        """A model that cannot be used is refused, so that the one before stays. At the start it is said when asked."""
        model, kind = self.model, self.client_type
        if proposal.trait.name == "model":
            model = proposal.value
        else:
            kind = proposal.value
        if hasattr(self, "chats") and (fault := settings.unusable(model, kind)):
            settings.refused[proposal.trait.name] = proposal.value
            raise TraitError(mask(f"{fault}; {proposal.trait.name} stays as it is"))
        settings.refused.pop(proposal.trait.name, None)
        return proposal.value

    @observe("kernel_budget")
    def _kernel_may_cost(self, change: Any) -> None:
        from mmsp_nb.money import spending

        spending.budget = self.kernel_budget

    @observe("model", "client_type", "system", "max_turns", "budget", "mask_keys")
    def _configured(self, change: Any) -> None:
        """``%config MMSPMagics.model = ...`` also counts for the chat that is in use."""
        self.sources.pop(change.name, None)
        chat = self.chats.find() if hasattr(self, "chats") else None
        if chat is None:
            return
        if change.name in ("model", "client_type") and self.model:
            try:
                self.chats.get(model=self.model, client=self.client_type)
            except OptionError as error:
                raise UsageError(mask(str(error))) from None
        elif change.name == "system":
            chat.system = self.system
        elif change.name in ("max_turns", "budget", "mask_keys"):
            setattr(chat, change.name, change.new)

    @no_var_expand
    @needs_local_scope
    @line_magic(NAME)
    def mmsp(self, line: str, local_ns: Any = None) -> Any:
        """Ask a model in a line, or do something with a chat: ``%mmsp SUBCOMMAND``. See ``%mmsp help``."""
        asking = self._begin(line, None, local_ns)
        if asking is None:
            return None
        with blocking():
            return _returned(asking, asking.run())

    @no_var_expand
    @needs_local_scope
    @cell_magic(NAME)
    def mmsp_cell(self, line: str, cell: str, local_ns: Any = None) -> None:
        """Ask a model: ``%%mmsp [options]`` with the prompt below it. See ``%mmsp help``."""
        asking = self._begin(line, cell, local_ns)
        if asking is not None:
            with blocking():
                asking.run()

    async def awaited(self, line: str, cell: str | None = None) -> Any:
        """The same for a cell that is nothing but this magic: `Transformer` lets the cell await it."""
        asking = self._begin(line, cell)
        if asking is None:
            return None
        answer = await asking.arun()
        return _returned(asking, answer) if cell is None else None

    def _begin(self, line: str, cell: str | None, local_ns: Any = None) -> Any:
        """What is to be asked; None when it was a command that asks nothing, which then is done."""
        local = None if local_ns is None or local_ns is self.shell.user_ns else local_ns
        try:
            with blocking():  # an expression that takes long: the kernel would only cancel the task behind it
                return self._asking(line, cell, local)
        except OptionError as error:
            raise UsageError(mask(str(error))) from None
        except KeyboardInterrupt:
            raise unsent() from None

    def _asking(self, line: str, cell: str | None, local: Any) -> Any:
        connect_tools(self.shell)
        decision: Decision | None = None
        more: dict[str, Any] = {"local": local}
        if cell is not None:
            # IPython ends every cell with a line feed
            options = parse_cell(line, cell.removesuffix("\r\n" if cell.endswith("\r\n") else "\n"))
            more["cell"] = self._run(line, cell)
        else:
            command, arguments = parse_line(line)
            if command == "continue":
                options = self._continue(arguments)  # type: ignore[arg-type]
            elif command in ("approve", "deny"):
                options, decision = self._decide(command, str(arguments[0]))  # type: ignore[index]
            elif command == "why":
                options = Options()
                more["ready"] = self._why(str(arguments[0]))  # type: ignore[index]
            elif command == "rerun":
                from .rerun import begin

                begun = begin(list(arguments), self.chats, self._namespace)  # type: ignore[arg-type]
                if isinstance(begun, str):
                    self._show(begun)
                return None if isinstance(begun, str) else begun
            elif command == "help" and (line.strip() in HELP or arguments == ["--cell"]):
                self._show(page(self, cell=bool(arguments)))
                return None
            elif isinstance(arguments, Options):
                options = arguments
                more["again"] = command == "retry"
            else:
                self._show(self.commands.run(command, arguments))
                return None

        if options.help:
            self._show(page(self, cell=cell is not None))
            return None

        from .asking import Asking

        connect_tools(self.shell)
        first = 1 if cell is None else 2
        asking = Asking(self.chats, options, self._namespace, first_line=first, decision=decision, **more)
        if options.dry_run:
            self._show(mask(asking.describe()))
            return None
        if options.compare:
            from .comparing import Comparing

            return Comparing(asking, self.shell, live=is_live(self.live))
        if options.background and is_live(self.live):
            from mmsp_nb import hosts

            shell = self.shell if in_kernel(self.shell) else None
            if self.chats.behind.ask(asking, None if options.quiet else shell, hosts.cell()):
                return None
        return asking

    def connect(self, cells: Cells) -> None:
        """Know the runs of cells and the exceptions that end them."""
        self.cells = self.chats.cells = cells

    def _connect_chats(self) -> None:
        self.chats.offer, self.chats.propose = self._offer, self._propose

    def _offer(self, text: str) -> None:
        from .host import elsewhere

        code = Code.of(text)
        self.waiting.bring(code)
        number, place = code.first, elsewhere.get()
        if place is not None:  # there is no next cell behind one that has ended
            place.note(code.nothing() if number is None else "%mmsp apply puts the code into the next cell")
        elif number is None:
            print(code.nothing())
        else:
            self.shell.set_next_input(code.cell(number))
            print(code.line(number) + code.more(number))

    def _propose(self, text: str, source: Source) -> None:
        from . import editing

        try:
            proposal = editing.proposed(text, source)
        except OptionError as error:
            print(mask(str(error)))
            return
        self.waiting.propose(proposal)
        editing.show(self.shell, proposal)

    def _apply(self, name: str | None) -> str:
        text, line = self.waiting.take(name)
        self.shell.set_next_input(text)
        return line

    def _run(self, line: str, cell: str) -> Any:
        """The run of the cell that asks."""
        from mmsp_nb import hosts

        from .asking import Run

        serial = 0 if self.cells is None else self.cells.serial
        return Run(hosts.cell(), serial, f"{line.strip()}\n{cell}")

    def _why(self, question: str) -> str:
        from .exceptions import explained

        return explained(None if self.cells is None else self.cells.failures.last, question)

    def _decide(self, command: str, text: str) -> tuple[Options, Decision]:
        """What ``%mmsp approve`` or ``%mmsp deny`` means for the calls that wait."""
        chat = self.chats.find()
        return Options(), parse(command, text, [] if chat is None else chat.awaiting)

    def _continue(self, options: Options) -> Options:
        if options.help:
            return options
        if options.new:
            raise OptionError("there is nothing to continue in a new chat: %mmsp continue goes without --new")
        chat = self.chats.find(options.chat)
        last = chat.turns[-1] if chat is not None and chat.turns else None
        if last is not None and last.pending is not None:
            return options
        if last is not None and (last.state == "partial" or last.finish_reason == "length"):
            options.prompt = GO_ON  # a text that was cut: there is nothing to send again, so it is a question
            return options
        raise OptionError("there is nothing to continue: " + ("the last answer is complete" if last else "ask first"))

    def _show(self, result: Any) -> None:
        from IPython.display import display

        from .sanitize import clean

        if isinstance(result, str):
            print(clean(result))
        else:
            display(result)

    def greeting(self) -> str:
        """The line that loading the extension prints."""
        model, why = choice(self.model, self.sources.get("model"))
        line = f"mmsp: {model} ({why}). Change it: %mmsp model ID. Help: %mmsp help"
        fault = settings.unknown(model, self.client_type)
        faults = [*self.faults, *([f"{model} cannot be used: {fault}"] if fault else [])]
        chat = self.chats.find() if self.chats.names() else None
        kept = [f"chat {self.chats.current} with {chat.model} goes on: %mmsp status"] if chat and chat.turns else []
        return "\n".join([line, *map(mask, faults), *kept])

    def take_over(self, before: MMSPMagics) -> None:
        """Go on with the chats of magics that were unloaded, and with what waits there for ``%mmsp apply``."""
        self.waiting = before.waiting
        self.chats = self.commands._chats = before.chats
        self.chats.begin_again(self._defaults)
        self._connect_chats()


def _returned(asking: Any, answer: Any) -> Any:
    """What a line gives back: that of a quiet question is not shown as the result of its cell either."""
    if answer is None or not asking.options.quiet:
        return answer
    from mmsp_nb.answer import Answer

    return Answer(answer.turn, shown=True)
