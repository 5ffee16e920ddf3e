"""`Conversation`: a list of turns over a stateful client, to ask, look into, fork, undo and move to another model.

The turns are the record. What the client holds as history follows from them, mended for the client's
vendor, so that a conversation that was interrupted, cut off or moved can always go on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mmsp_nb import choosing, hosts, reprs
from mmsp_nb.agent import Agent, Execute
from mmsp_nb.answer import Answer
from mmsp_nb.approval import Approve, PendingCall, Wait, approved, denied
from mmsp_nb.gauge import guess
from mmsp_nb.keeping import Keeping
from mmsp_nb.limits import checked_max_calls, checked_max_cost, checked_max_turns
from mmsp_nb.money import BudgetExceededError, Paying, checked_budget, spending
from mmsp_nb.protocol.copying import copy_item, copy_messages
from mmsp_nb.protocol.errors import (
    ConcurrentCallError,
    InvalidMessageError,
    UnsupportedContentError,
    UnsupportedParameterError,
)
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.protocol.repairs import RepairReport, repair
from mmsp_nb.protocol.usage import add as add_usage
from mmsp_nb.questions import Prompt, Question, Tools, registry_of
from mmsp_nb.rerunning import Rerunning
from mmsp_nb.tools import Policy, ToolRegistry
from mmsp_nb.tree import Tree
from mmsp_nb.turns import Hiding, Recorder, Turn, join, merged

if TYPE_CHECKING:
    import os

    from mmsp_nb.transport.cassette import Cassette

__all__ = ["Answer", "Conversation", "Turn"]

_REFUSED = (ConcurrentCallError, InvalidMessageError, UnsupportedContentError, UnsupportedParameterError)


class Conversation(Tree, Rerunning, Paying, Keeping):
    """A conversation with a model that can use tools.

    ::

        chat = Conversation("claude-opus-5-5", tools=[get_weather], system="Be brief.")
        answer = chat.ask("What's the weather in London and in Paris?")
        answer.text, answer.calls[0].result, answer.cost

    Args:
        model: A model id; None takes what is there: a key in the environment, else the local model, else the demo.
        tools: Functions, tools or names; or a `ToolRegistry`, which is then used live.
        system: The system prompt.
        client: A stateful client of the protocol to use instead of making one; its history is taken over.
        config: Defaults for the config of every question.
        policy: Which tool calls run unasked; default: all but those of tools that ask.
        max_turns: Requests that one question may make, each round of tool calls being one.
        max_calls: Tool calls that one question may make; None for any number.
        max_cost: US dollars, by list price, that one question may cost: it is refused when its request is estimated
            above it, and makes no more calls once it is reached; None for any.
        budget: US dollars that all of it may cost; None for no limit. See `budget`.
        name: For people; shown in the repr.
        mask_keys: Replace keys by ``***`` in all that is sent to the model; `Turn.masked` counts them.
        cassette: A recording of what is sent and answered, as a path or a `Cassette`: made the first time, replayed
            afterwards, without a key and without a network (see `Cassette` for more).
        client_options: For `AutoLLMClient`: ``api_key``, ``base_url``, ``client_type``, ``default_headers``,
            ``transport``.

    Attributes:
        turns: The questions so far, as `Turn` objects, failed and interrupted ones included.
        client: The client. Its history belongs to the conversation.
        why: How the model was chosen when none was given, else None.
        branch, branches: The branch in use, and the turns of all; see `split`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        tools: Tools | None = None,
        system: str | None = None,
        client: Any = None,
        config: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        max_turns: int = 10,
        max_calls: int | None = None,
        max_cost: float | Decimal | None = None,
        budget: float | Decimal | str | None = None,
        name: str | None = None,
        cassette: str | os.PathLike[str] | Cassette | None = None,
        mask_keys: bool = True,
        **client_options: Any,
    ) -> None:
        self._tools = registry_of(tools)
        self.config: dict[str, Any] = choosing.defaults(config)
        if system is not None:
            self.config["system_prompt"] = system
        self.policy = choosing.policy_of(policy) or Policy()
        self.max_turns = checked_max_turns(max_turns)
        self.max_calls, self.max_cost = checked_max_calls(max_calls), checked_max_cost(max_cost)
        self.name, self.mask_keys = name, mask_keys
        self.turns = []
        self.why: str | None = None
        if client is not None and (model is not None or client_options):
            raise TypeError("give either a client, or a model and options for one")
        if cassette is not None:
            client_options["transport"] = choosing.with_cassette(cassette, client, client_options)
        if client is None and model is None:
            choice = choosing.choose(client_options.get("transport"))
            model, self.why = choice.model, choice.why
            client_options = {"client_type": choice.client_type, **client_options}
        self._transport = client_options.get("transport")
        made = client is None
        self.client = choosing.make_client(model or "", client_options) if made else choosing.stateful(client)
        self._before: list[UniMessage] = self.client.get_history()
        if (origin := choosing.origin(self.client)) is not None:
            for message in self._before:
                message.setdefault("origin", origin)
        self._open_account()
        self.budget = checked_budget(budget)
        self._question: Question | None = None
        self._plant()

    # asking

    def ask(
        self,
        prompt: Prompt = None,
        *,
        images: Iterable[Any] = (),
        config: Mapping[str, Any] | None = None,
        tools: Tools | None = None,
        type: Any = None,
        policy: Policy | None = None,
        signal: Any = None,
    ) -> Answer:
        """Ask, run the tools the model asks for, and return the answer. Blocks; in a notebook cell it streams.

        Works in scripts, terminals and cells, also when an event loop is running on this thread. A Ctrl-C (or the
        notebook's stop) ends it at once; what had come so far is kept in ``turns[-1]``.

        Args:
            prompt: Text, or a list of texts, pictures and protocol items. None goes on where the last turn
                stopped: it sends tool results at the limit of requests, or the prompt of a failed turn again.
            images: Pictures beside the prompt: URLs, paths, bytes, PIL images, matplotlib figures.
            config: Laid over the conversation's config for this question; None values remove a default.
            tools: Instead of the conversation's tools for this question.
            type: What the answer is to be: a pydantic model, dataclass, TypedDict, enum, Literal, a list of them.
                ``answer.value`` is then the validated object.
            policy: Instead of the conversation's policy for this question.
            signal: An AbortSignal that can stop it.

        Raises:
            ConcurrentCallError: another question of this conversation is being answered.
            InvalidMessageError, UnsupportedParameterError, UnsupportedContentError: nothing was sent, no turn is kept.
            TypedAnswerError: what was answered is not of ``type``, and was not after corrections; the turn is kept.
            Exceptions of the client and the transport: the turn is kept as ``failed`` or ``partial``.
        """
        return self._ask(self._asked(prompt, images, config, tools, signal, type=type, policy=policy))

    async def ask_async(
        self,
        prompt: Prompt = None,
        *,
        images: Iterable[Any] = (),
        config: Mapping[str, Any] | None = None,
        tools: Tools | None = None,
        type: Any = None,
        policy: Policy | None = None,
        signal: Any = None,
    ) -> Answer:
        """`ask` for async code: runs on the caller's event loop."""
        return await self._ask_async(self._asked(prompt, images, config, tools, signal, type=type, policy=policy))

    def stream(
        self,
        prompt: Prompt = None,
        *,
        images: Iterable[Any] = (),
        config: Mapping[str, Any] | None = None,
        tools: Tools | None = None,
        type: Any = None,
        policy: Policy | None = None,
        signal: Any = None,
        execute: Execute | None = None,
        approve: Approve | Wait | None = None,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of `Agent.run` for a question, while the conversation keeps its books.

        Nothing happens before the first step. When the ``end`` event is handed out, the turn is complete; an
        iterator that is closed or dropped earlier leaves a partial turn. ``execute`` is how tools are run, ``approve``
        who is asked about calls that need a person's word: a function, "wait" to end there, None for nobody.
        """
        question = self._asked(prompt, images, config, tools, signal, type=type, policy=policy)
        return self._start(question, execute, approve)

    # deciding

    @property
    def awaiting(self) -> list[PendingCall]:
        """The calls that wait for a person's word; see `approve` and `deny`."""
        turns = self._finished()
        return list(turns[-1].waiting) if turns else []

    def approve(self, *which: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Run the calls that wait, and go on with the answer.

        Args:
            which: Names or ids of the calls that may run; the others are denied then. None: all of them.
            arguments: To be used in place of the model's, if it is one call.

        Raises:
            UnsupportedOperationError: nothing waits, or nothing of that name. Otherwise as `ask`.
        """
        return self._ask(Question(None, verdicts=approved(self.awaiting, which, arguments)))

    async def approve_async(self, *which: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """`approve` for async code."""
        return await self._ask_async(Question(None, verdicts=approved(self.awaiting, which, arguments)))

    def deny(self, reason: str = "") -> Answer:
        """Leave the calls that wait undone, tell the model so, with the reason, and go on with the answer."""
        return self._ask(Question(None, verdicts=denied(self.awaiting, reason)))

    async def deny_async(self, reason: str = "") -> Answer:
        """`deny` for async code."""
        return await self._ask_async(Question(None, verdicts=denied(self.awaiting, reason)))

    # looking

    @property
    def model(self) -> str:
        """The model that answers the next question."""
        return str(getattr(self.client, "model", None) or type(self.client).__name__)

    @model.setter
    def model(self, model: str) -> None:
        raise AttributeError(
            f"a conversation changes its model by chat.switch({str(model)!r}), which mends its history"
        )

    @property
    def messages(self) -> list[UniMessage]:
        """A copy of the history that the next question builds on: what was answered, as it was said."""
        return copy_messages(join(self._sent(), self._before))

    @property
    def tools(self) -> ToolRegistry:
        """The tools: add to them at any time, or set others, in any form that the constructor takes."""
        return self._tools

    @tools.setter
    def tools(self, tools: Tools | None) -> None:
        self._tools = registry_of(tools)

    @property
    def system(self) -> str | None:
        """The system prompt; may be set."""
        return self.config.get("system_prompt")

    @system.setter
    def system(self, text: str | None) -> None:
        self.config["system_prompt"] = text

    @property
    def running(self) -> bool:
        """Whether a question is being answered."""
        return self._question is not None and self._question.unfinished

    def __len__(self) -> int:
        return len(self.turns)

    def __bool__(self) -> bool:
        return True

    # changing

    def switch(self, model: str | None = None, *, client: Any = None, **client_options: Any) -> RepairReport:
        """Go on with another model. The history stays, mended where the new vendor would refuse it.

        Keys and URLs are never taken over from the old model. Returns what was mended, which is falsy when
        nothing was; switching back brings the original back. When no client can be made for ``model``, nothing changes.
        """
        self._idle("switch the model")
        if (model is None) == (client is None):
            raise TypeError("switch() takes a model or a client")
        made = {"transport": self._transport, **client_options}
        client = choosing.make_client(model or "", made) if client is None else choosing.stateful(client)
        self.client, self.why = client, None
        report = self._load_history()
        return client.mended_history()[1] if hasattr(client, "mended_history") else report

    # showing

    def __repr__(self) -> str:
        return reprs.conversation_text(self._title(), self.turns)

    def _repr_html_(self) -> str:
        return reprs.conversation_html(self._title(), self.turns)

    def _title(self) -> str:
        count = f"{len(self.turns)} turn{'' if len(self.turns) == 1 else 's'}"
        return f"Conversation{f' {self.name!r}' if self.name else ''} with {self.model}, {count}"

    # one question

    def _asked(
        self, prompt: Any, images: Any, config: Any, tools: Any, signal: Any, type: Any, policy: Any
    ) -> Question:
        return Question(prompt, images, config, tools, signal, type=type, policy=policy, among=self.tools)

    def _ask(self, question: Question) -> Answer:
        try:
            shown = hosts.run(self, lambda execute, approve=None: self._start(question, execute, approve))
        finally:
            self._settle(question, None)
        return question.answer(shown)

    async def _ask_async(self, question: Question) -> Answer:
        try:
            shown = await hosts.arun(self, lambda execute, approve=None: self._start(question, execute, approve))
        finally:
            self._settle(question, None)
        return question.answer(shown)

    def _start(
        self, question: Question, execute: Execute | None, approve: Approve | Wait | None
    ) -> AsyncGenerator[dict[str, Any], None]:
        stream = self._run(question, execute, approve)
        question.watch(stream)
        return stream

    async def _run(
        self, question: Question, execute: Execute | None, approve: Approve | Wait | None
    ) -> AsyncGenerator[dict[str, Any], None]:
        await self._claim(question)
        error: BaseException | None = None
        try:
            if question.prompt is None and self.turns:
                question.like(self.turns[-1])
            tools = self.tools if question.tools is None else question.tools
            config, goal = {**self.config, **question.config}, question.typed
            question.agent = agent = Agent(
                self.client,
                tools,
                max_turns=self.max_turns,
                max_calls=self.max_calls,
                max_cost=self._may_spend(),
                cost=choosing.cost_of(self.client),
                execute=execute,
                policy=question.policy or self.policy,
                approve=approve,
                goal=goal,
                mask=question.mask,
            )
            agent.config = config
            if goal is not None:
                agent.config, agent.tools = goal.plan(self.client, config, tools)
            recorder, message = self._begin(question, tools, config)
            agent.name, agent.conversation = self.name, self.turns[0].id
            run = agent.run(message, signal=question.signal, held=question.held, verdicts=question.verdicts)
            self._tell(recorder.turn, None)
            async with aclosing(run) as events:
                async for event in events:
                    recorder.add(event)
                    self._tell(recorder.turn, event)
                    yield event
            if goal is not None and recorder.turn.reason == "answer" and not goal.reached:
                raise goal.error(recorder.turn.finish_reason)
        except BaseException as caught:
            error = caught
            raise
        finally:
            self._settle(question, error)

    async def _claim(self, question: Question) -> None:
        while (before := self._question) is not None and not before.over:
            if not before.unfinished:
                await before.closed()
                self._settle(before, None)
                continue
            raise ConcurrentCallError(
                "this conversation is answering another question; wait for it, close its stream, or fork()",
                client=type(self.client).__name__,
            )
        question.begin(self)
        self._question = question

    def _begin(
        self, question: Question, tools: ToolRegistry, config: Mapping[str, Any]
    ) -> tuple[Recorder, UniMessage | None]:
        """Make the turn; returns the message to send, which also carries what was left unsent before."""
        self._follow()
        last = self.turns[-1] if self.turns else None
        turn = Turn(
            model=self.model,
            client_type=getattr(self.client, "client_type", None),
            origin=choosing.origin(self.client),
            config=copy_item({k: v for k, v in config.items() if v is not None and k != "tools"}),
            tools=tools.names(),
            parent=None if last is None else last.id,
            prices=choosing.prices(self.client),
            cell=question.cell,
            basis=self._basis(),
            typed=question.typed,
            masked=question.masked,
            asked={"tools": question.tools, "policy": question.policy},
        )
        if question.prompt is None and last is not None and last.held:
            self._afford(None, config, tools)
            question.held, turn.resumes = copy_item(last.held), True
            if self._ends_unsent():  # there the calls are answered with "not run yet"
                self.client.set_history(self.client.get_history()[:-1])
            question.recorder = Recorder(turn, question.held)
            self.turns.append(turn)
            return question.recorder, None
        if question.prompt is not None:
            own = question.message()
        elif last is not None and last.pending is not None:
            own = question.message(last.pending)
            if last.origin is not None:
                own.setdefault("origin", last.origin)
            turn.resumes = bool(last.history) and last.history[-1]["role"] == "user"
            self._afford(None if turn.resumes else own, config, tools)
        else:
            raise InvalidMessageError("there is nothing to go on with: give a prompt")
        turn.messages.append(own)
        question.recorder = Recorder(turn)
        if question.prompt is not None:
            try:
                self._afford(own, config, tools)
            except BudgetExceededError:
                self.turns.append(turn)  # so that its prompt can be sent when there is money again
                raise
        message: UniMessage = copy_item(own)
        if self._ends_unsent():
            history = self.client.get_history()
            unsent = history.pop()
            self.client.set_history(history)
            message = unsent if turn.resumes else merged(unsent, message)
        self.turns.append(turn)
        return question.recorder, message

    def _settle(self, question: Question, error: BaseException | None) -> None:
        """The question is over, in whatever way; does its work once."""
        recorder, settled = question.recorder, question.over
        question.over = True
        if settled or recorder is None:
            return
        turn = recorder.turn
        before = [*join(self._sent(), self._before), *turn.history] if turn.state == "running" else []
        recorder.stop(error, None if question.agent is None else question.agent.pending)
        if recorder.cut is not None and turn.state == "partial":
            took = guess(before, *recorder.cut, {**self.config, **question.config}, self.client)
            turn.usage, turn.estimated = add_usage(turn.usage, took), True
        if isinstance(error, _REFUSED) and turn.state == "failed":
            self.turns.remove(turn)  # wrong in form: nothing was sent, and nothing is kept
        self._pay([turn])
        spending.add(turn.cost)
        if turn.state != "done" or (turn.history and turn.history[-1]["role"] == "user"):
            self._load_history()
        if self.turns and len(self.turns) == len(self._given) + 1:
            self._given.append(self.turns[-1])
        elif len(self.turns) != len(self._given):
            self._given = list(self.turns)
        self._tell(turn, None)

    # history

    def _finished(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.state != "running"]

    def _load_history(self) -> RepairReport:
        """Give the client the history that the turns leave. The report says what was mended before that."""
        messages, report = join(self._sent(), self._before), RepairReport()
        if not hasattr(self.client, "mended_history"):  # then nobody else keeps another vendor's signatures from it
            own = choosing.origin(self.client)
            foreign = {n for n, message in enumerate(messages) if message.get("origin", own) != own}
            messages, report = repair(messages, foreign=foreign)
        self.client.set_history(messages)
        self._given, self._hidings = list(self.turns), Hiding.changes
        return report

    def _idle(self, what: str) -> None:
        if self.running:
            raise ConcurrentCallError(
                f"cannot {what} while a question is being answered", client=type(self.client).__name__
            )
        if self._question is not None:
            self._settle(self._question, None)
