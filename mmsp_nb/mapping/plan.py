"""`Plan`: what all rows have in common, checked before anything is sent; and how one row is answered with it."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from mmsp_nb import choosing
from mmsp_nb.agent import Agent, Execute
from mmsp_nb.keyless import KeyMask
from mmsp_nb.limits import checked_max_turns
from mmsp_nb.mapping.gate import Gate, Gated
from mmsp_nb.mapping.workers import Remote, Spec
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.configs import check_config
from mmsp_nb.protocol.errors import ApiKeyRequiredError, MMSPError
from mmsp_nb.protocol.items import UniMessage, UsageMetadata
from mmsp_nb.tools import Policy, Tools, registry_of
from mmsp_nb.transport.wire import public_url
from mmsp_nb.typed import TypedAnswer

__all__ = ["Done", "Plan"]


@dataclass(slots=True)
class Done:
    """One row's answer.

    ``said`` are the messages after the row's own. ``data`` is the typed answer as JSON, None without a type.
    ``masked`` counts the keys that were replaced in what the model read, by place. ``duration`` is in
    seconds; ``kept`` tells that it was not asked in this run.
    """

    value: Any
    text: str
    said: list[UniMessage]
    usage: UsageMetadata | None
    finish_reason: str | None
    data: dict[str, Any] | None = None
    duration: float = 0.0
    attempts: int = 1
    outcomes: tuple[Any, ...] = ()
    kept: bool = False
    masked: dict[str, int] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """It as JSON, for a file."""
        names = ("text", "said", "usage", "finish_reason", "data", "duration", "attempts")
        record = {name: getattr(self, name) for name in names}
        return {**record, "masked": self.masked} if self.masked else record


class Plan:
    """The client and all that is asked of it beside the rows.

    Raises ValueError, TypeError and the errors of clients for what cannot work, before anything is sent.
    """

    def __init__(
        self,
        *,
        type: Any = None,
        model: str | None = None,
        client: Any = None,
        system: str | None = None,
        tools: Tools | None = None,
        config: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        max_turns: int = 10,
        cassette: Any = None,
        executor: Any = None,
        mask_keys: bool = True,
        **client_options: Any,
    ) -> None:
        if client is not None and (model is not None or client_options):
            raise TypeError("give either a client, or a model and options for one")
        self.executor = executor
        self.spec: Spec | None = None
        self.workers: Counter[str] = Counter()
        if executor is not None:
            if cassette is not None:
                raise TypeError("cassette and executor do not go together: requests are recorded in this process only")
            self.spec = Spec.of(executor, client, model, client_options)
        self.client = _made(client, model, cassette, client_options, remote=executor is not None)
        self.mask = KeyMask.of(self.client) if mask_keys else None
        self.tools = registry_of(tools)
        self.policy = choosing.policy_of(policy) or Policy()
        self.max_turns = checked_max_turns(max_turns)
        self.config = choosing.defaults(config)
        if system is not None:
            self.config["system_prompt"] = system
        check_config(self.config, client=getattr(getattr(self.client, "vendor", None), "client", ""))
        self.typed = None if type is None else TypedAnswer(type)
        self.cost_of: Callable[[Any], Decimal | None] | None = choosing.cost_of(self.client)
        self.prices = choosing.prices(self.client)
        self.fingerprint = self._fingerprint()

    @property
    def model(self) -> str:
        """What answers."""
        return str(getattr(self.client, "model", None) or type(self.client).__name__)

    def _fingerprint(self) -> str:
        wish = None if self.typed is None else [self.typed.name, self.typed.schema]
        base_url = getattr(self.client, "base_url", None)
        here = public_url(base_url) if isinstance(base_url, str) and not _on_loopback(self.client) else None
        what = [self.model, getattr(self.client, "client_type", None), here, self.config, wish, self.tools.schemas()]
        return json.dumps(what, sort_keys=True, default=repr)

    async def answer(self, messages: list[UniMessage], gate: Gate, execute: Execute | None, **limits: Any) -> Done:
        """Answer one row. Raises what ended it, with ``attempts`` noted on the exception."""
        mask = None if self.mask is None else self.mask.again()
        if mask is not None:
            messages = [mask.message(message) for message in messages]
        gated = Gated(self._client(), gate, **limits)
        if messages[:-1]:
            gated.set_history(messages[:-1])
        typed, config, tools = None, self.config, self.tools
        if self.typed is not None:
            typed = self.typed.again()
            config, tools = typed.plan(gated, config, tools)
        agent = Agent(
            gated,
            tools,
            max_turns=self.max_turns,
            config=config,
            execute=execute,
            policy=self.policy,
            goal=typed,
            mask=mask,
        )
        begin, usage, finish_reason, reason, text, outcomes = time.monotonic(), None, None, "", "", []
        try:
            async with contextlib.aclosing(agent.run(messages[-1])) as events:
                async for event in events:
                    kind = event["type"]
                    if kind == "turn_end":
                        finish_reason = event["finish_reason"]
                        if event["usage_metadata"] is not None:
                            usage = tokens.add(usage, event["usage_metadata"])
                    elif kind == "tool_end":
                        outcomes.append(event["outcome"])
                    elif kind == "end":
                        reason, text = event["reason"], event["text"]
            if typed is not None and not typed.reached:
                raise typed.error(finish_reason)
            if reason != "answer":
                raise MMSPError(
                    f"no answer within {self.max_turns} requests (max_turns): the model goes on calling tools"
                )
        except BaseException as error:
            error.__dict__["_mmsp_row"] = gated.attempts, usage
            raise
        return Done(
            value=text if typed is None else typed.value,
            text=text,
            said=gated.get_history()[len(messages) :],
            usage=usage,
            finish_reason=finish_reason,
            data=None if typed is None else typed.data,
            duration=time.monotonic() - begin,
            attempts=gated.attempts,
            outcomes=tuple(outcomes),
            masked={} if mask is None else mask.found,
        )

    def read(self, messages: list[UniMessage]) -> list[UniMessage]:
        """A row's messages as the model reads them."""
        mask = None if self.mask is None else self.mask.again()
        return messages if mask is None else [mask.message(message) for message in messages]

    def restored(self, record: Mapping[str, Any]) -> Done | None:
        """An answer out of a file; None when it is not what is asked for now."""
        try:
            value = record["text"]
            if self.typed is not None:
                value = self.typed.again().restore(record["data"])
            names = ("text", "said", "usage", "finish_reason", "data", "duration", "attempts")
            masked = dict(record.get("masked", {}))
            return Done(value, kept=True, masked=masked, **{name: record[name] for name in names})
        except (KeyError, TypeError, ValueError):
            return None

    def _client(self) -> Any:
        """A client for one row, with an empty history."""
        if self.spec is not None:
            return Remote(self.client, self.spec, self.executor, self.workers)
        return self.client.sibling()


def _made(client: Any, model: str | None, cassette: Any, options: dict[str, Any], *, remote: bool) -> Any:
    """The client whose siblings answer the rows. It tries nothing again: that is the gate's business."""
    if cassette is not None:
        options["transport"] = choosing.with_cassette(cassette, client, options)
    if client is not None:
        if not hasattr(client, "sibling"):
            raise TypeError(
                f"client must be an AutoLLMClient, or have sibling(), to answer rows side by side, not {client!r:.80}"
            )
        return client.sibling(retries=0) if hasattr(client, "vendor") else client.sibling()
    if model is None:
        choice = choosing.choose(options.get("transport"))
        model, options = choice.model, {"client_type": choice.client_type, **options}
    try:
        made = choosing.make_client(model, options)
    except ApiKeyRequiredError:
        if not remote:
            raise
        # the key may be where the workers are
        made = choosing.make_client(model, {**options, "api_key": "of-the-workers"})
    return made.sibling(retries=0)


def _on_loopback(client: Any) -> bool:
    """Whether the address is that of a server of this process, whose port is another one in each."""
    from mmsp_nb import local

    return local.is_local(str(getattr(client, "model", "")))
