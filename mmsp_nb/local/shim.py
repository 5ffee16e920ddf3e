"""Tool calls, JSON answers and foreign wire formats for a small model that has none of them.

The 135M model ignores tools. Asked for the arguments of a function alone, under the function's own schema, it gets the
texts among them right most of the time. So:

* whether and what to call is decided by the rules of the demo, or by ``tool_choice``;
* numbers and choices that the prompt spells out are fixed, the other arguments are the model's, and a text that it
  makes up where the prompt has one is put right; the call goes out as an ordinary tool call;
* once there are results, the model puts them into a sentence; one that says something else than the results is replaced
  by that of the rules.

Whatever went this way carries the header ``x-mmsp-local: shim``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from . import wire
from .front import Answer, Exchange
from .rules import Plan, plan_calls, results
from .rules.choosing import enum_values
from .rules.schema import resolve
from .rules.words import stem, stems
from .upstream import Upstream
from .wire.neutral import Ask, BadRequest, Call, Delta, Finish, Result, Say, Text, Turn, Usage, gather
from .wire.pieces import deltas

__all__ = ["HEADERS", "Shim", "capped", "messages", "narrowed", "plain"]

HEADERS = {"x-mmsp-local": "shim"}
"""Marks an answer that is not llama.cpp's own."""

_ARGUMENTS = (
    "You call functions. Function: {tool}\nReply only with the JSON arguments of the function for the user request."
)
_EXACT = {"temperature": 0, "repeat_penalty": 1.0}
"""Sampling where words must be repeated exactly: a repeat penalty would punish the names in the prompt."""


_LONGEST_FACTS = 400
_EXAMPLES = (
    {"role": "system", "content": "You put facts into one sentence."},
    {"role": "user", "content": "Facts: Oslo: wind 12 km/h, sky clear; Lima: wind 3 km/h, sky grey"},
    {
        "role": "assistant",
        "content": "Oslo has a wind of 12 km/h and a clear sky, while Lima has a wind of 3 km/h and a grey sky.",
    },
    {"role": "user", "content": "Facts: apples: 7 in stock"},
    {"role": "assistant", "content": "There are 7 apples in stock."},
)
"""Without examples the model makes figures up."""


class Shim:
    """Answers what the model's own server cannot. ``n_predict`` is the budget of an answer without one."""

    def __init__(self, upstream: Upstream, n_predict: int) -> None:
        self.upstream, self.n_predict = upstream, n_predict

    def answer(self, ask: Ask, spoken: wire.Wire, exchange: Exchange) -> Answer:
        """One answer in the caller's wire format. Raises BadRequest, also before the first byte of a stream."""
        fresh = ask.new_results()
        if fresh and not ask.turns[-1].text.strip() and ask.schema is None:
            says, usage = self._results(ask, fresh, exchange)
            return _finished(ask, spoken, says, "stop", usage)
        plans = self._plans(ask, fresh)
        forced = ask.tool_choice == "required" or isinstance(ask.tool_choice, tuple)
        if plans and (forced or not plans[0].filled.missing):
            says, usage = self._calls(ask, plans, exchange)
            return _finished(ask, spoken, says, "tool_call", usage)
        source = self._text(ask, plans[0].filled.missing if plans else (), exchange)
        first = next(source)  # a refusal comes now, while there still is a status to put it into
        return _streamed(ask, spoken, first, source) if ask.stream else _whole(ask, spoken, first, source)

    @staticmethod
    def _plans(ask: Ask, fresh: Sequence[Result]) -> list[Plan]:
        if fresh and not ask.turns[-1].text.strip():
            return []
        plans = plan_calls(ask, ask.prompt)
        if plans and plans[0].filled.missing and results.compare(ask.prompt, results.remembered(ask)):
            return []  # "which of the two is warmer?" is about what is known already
        return plans

    def _results(self, ask: Ask, fresh: Sequence[Result], exchange: Exchange) -> tuple[list[Say], Usage]:
        """The results of the tools in a sentence of the model's, if it is true to them."""
        said = results.answer(fresh)
        facts = "; ".join(f"{results.label(result, fresh)}: {results.spoken(result)}" for result in fresh)
        if len(facts) > _LONGEST_FACTS or "\n" in facts or any(map(results.failed, fresh)):
            return [Text(said)], Usage()
        body = {
            "messages": [*_EXAMPLES, {"role": "user", "content": f"Facts: {facts}"}],
            "max_tokens": min(ask.max_tokens or 160, 160),
            **_EXACT,
        }
        text, usage = self.upstream.complete(body, exchange.connection)
        labels = [results.label(result, fresh) for result in fresh]
        return [Text(text.strip() if true_to(text, facts, labels) else said)], usage

    def _calls(self, ask: Ask, plans: Sequence[Plan], exchange: Exchange) -> tuple[list[Say], Usage]:
        says: list[Say] = []
        total = Usage()
        for plan in plans:
            for wanted in plan.filled.calls:
                arguments, usage = self._arguments(ask, plan, wanted, exchange)
                says.append(Call(plan.tool.name, arguments, ask.ident("call_", len(says))))
                total = Usage(total.input + usage.input, total.cached + usage.cached, total.output + usage.output)
                if not ask.parallel:
                    return says, total
        return says, total

    def _arguments(
        self, ask: Ask, plan: Plan, wanted: Mapping[str, Any], exchange: Exchange
    ) -> tuple[dict[str, Any], Usage]:
        """The arguments of one call, by the model; by the rules if what it writes is no JSON object."""
        tool = plan.tool
        schema = narrowed(tool.parameters, wanted, plan.filled.split)
        if not schema.get("properties"):
            return dict(wanted), Usage()
        shown = {"name": tool.name, "description": tool.description, "parameters": schema}
        question = ask.prompt
        if plan.filled.split:
            question += f"\nNow only for {plan.filled.split} {wanted[plan.filled.split]}."
        body = {
            "messages": [
                {"role": "system", "content": _ARGUMENTS.format(tool=json.dumps(shown, ensure_ascii=False))},
                {"role": "user", "content": question},
            ],
            "response_format": {"type": "json_schema", "json_schema": {"name": tool.name, "schema": schema}},
            "max_tokens": min(ask.max_tokens or 256, 256),
            **_EXACT,
        }
        try:
            text, usage = self.upstream.complete(body, exchange.connection)
            arguments = json.loads(text)
        except (ValueError, BadRequest):
            return dict(wanted), Usage()
        return (grounded(arguments, wanted, ask.prompt) if isinstance(arguments, dict) else dict(wanted)), usage

    def _text(self, ask: Ask, missing: Sequence[str], exchange: Exchange) -> Iterator[Delta | tuple[Finish, Usage]]:
        body: dict[str, Any] = {
            "messages": messages(ask, missing),
            "max_tokens": min(ask.max_tokens or self.n_predict, self.n_predict),
        }
        if ask.schema is not None:
            form = {"name": "answer", "schema": dict(ask.schema) or {"type": "object"}}
            body |= {"response_format": {"type": "json_schema", "json_schema": form}, **_EXACT}
        return self.upstream.stream(body, exchange.connection)


def true_to(text: str, facts: str, labels: Sequence[str]) -> bool:
    """Whether ``text`` says the figures of ``facts`` and no others, names every label, and adds no word that means
    something."""
    told, given = (set(re.findall(r"\d+(?:\.\d+)?", part)) for part in (text, facts))
    added = set(stems(text)) - set(stems(facts)) - {stem("both"), stem("respectively")}
    return told == given and not added and all(label.lower() in text.lower() for label in labels)


def grounded(arguments: Mapping[str, Any], wanted: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """The model's arguments; a text that it made up gives way to one that the rules found in the prompt."""
    low = prompt.lower()
    made = dict(arguments)
    for name, value in wanted.items():
        mine = made.get(name)
        if isinstance(value, str) and isinstance(mine, str) and mine.lower() not in low and value.lower() in low:
            made[name] = value
    return made


def narrowed(schema: Mapping[str, Any], wanted: Mapping[str, Any], split: str) -> dict[str, Any]:
    """A tool's schema with only what the model shall fill: what is required, and what the prompt speaks of.

    A small model would invent values for optional parameters. Fixed are the parameter in which several calls differ,
    and numbers and choices that the prompt spells out.
    """
    root = resolve(schema, schema)
    required = [name for name in root.get("required") or () if isinstance(name, str)]
    given = root.get("properties")
    kept: dict[str, Any] = {}
    for name, entry in given.items() if isinstance(given, Mapping) else ():
        if name in wanted and (
            name == split or not isinstance(wanted[name], str) or enum_values(resolve(entry, schema))
        ):
            kept[name] = {"const": wanted[name]}
        elif name in wanted or name in required:
            kept[name] = entry
    made: dict[str, Any] = {"type": "object", "properties": kept, "required": list(kept), "additionalProperties": False}
    return made | {key: root[key] for key in ("$defs", "definitions") if key in root}


def messages(ask: Ask, missing: Sequence[str]) -> list[dict[str, str]]:
    """The conversation as plain text for the model: calls are left out, results are told in a sentence."""
    made: list[dict[str, str]] = []
    system = [ask.system] if ask.system else []
    if missing:
        system.append(
            f"You do not know the {' and the '.join(missing)} yet. Ask the user for it in one short question."
        )
    if system:
        made.append({"role": "system", "content": "\n".join(system)})
    for turn in ask.turns:
        text = _told(turn)
        if not text:
            continue
        if made and made[-1]["role"] == turn.role:
            made[-1]["content"] += f"\n\n{text}"
        else:
            made.append({"role": turn.role, "content": text})
    return made or [{"role": "user", "content": "Hello"}]


def _told(turn: Turn) -> str:
    facts = [f"- {results.label(result, turn.results)}: {result.text}" for result in turn.results]
    lines = ["Facts:\n" + "\n".join(facts)] if facts else []
    return "\n\n".join([*lines, turn.text]).strip()


def _finished(ask: Ask, spoken: wire.Wire, says: list[Say], finish: Finish, usage: Usage) -> Answer:
    """An answer that is complete before it is sent."""
    if not ask.stream:
        return Answer.json(spoken.document(ask, says, finish, usage), headers=HEADERS)
    encoder = spoken.encoder(ask, usage)

    def frames() -> Iterator[bytes]:
        yield from encoder.start()
        for delta in deltas(says):
            yield from encoder.push(delta)
        yield from encoder.finish(finish, usage)

    return Answer.events(frames(), HEADERS)


_Source = Iterator[Delta | tuple[Finish, Usage]]


def _streamed(ask: Ask, spoken: wire.Wire, first: Delta | tuple[Finish, Usage], rest: _Source) -> Answer:
    """An answer handed on piece by piece as the model writes it."""
    encoder = spoken.encoder(ask, Usage())

    def frames() -> Iterator[bytes]:
        yield from encoder.start()
        try:
            for piece in chain((first,), rest):
                if isinstance(piece, Delta):
                    yield from encoder.push(piece)
                else:
                    yield from encoder.finish(*piece)
        except BadRequest as refusal:
            yield from encoder.fail(refusal.status, refusal.message)

    return Answer.events(frames(), HEADERS)


def _whole(ask: Ask, spoken: wire.Wire, first: Delta | tuple[Finish, Usage], rest: _Source) -> Answer:
    pieces = [first, *rest]
    finish, usage = next(piece for piece in pieces if not isinstance(piece, Delta))
    says = gather(piece for piece in pieces if isinstance(piece, Delta))
    return Answer.json(spoken.document(ask, says or [Text("")], finish, usage), headers=HEADERS)


def plain(ask: Ask, spoken: wire.Wire) -> bool:
    """Whether llama.cpp's server can answer this itself: its own three formats, text only, no tools, no schema."""
    if spoken.NAME not in ("chat", "responses", "messages") or (ask.tools and ask.tool_choice != "none"):
        return False
    # JSON by the server's own settings, with its repeat penalty, would punish the words it must repeat
    return ask.schema is None and all(isinstance(part, Text) for turn in ask.turns for part in turn.parts)


def capped(body: bytes, ask: Ask, n_ctx: int, n_predict: int) -> bytes:
    """The request as it goes to llama.cpp: as it came, unless its budget is beyond what the model can hold.

    A budget like the 64,000 tokens that some clients always send would let a weak model ramble on to its limit.
    """
    if ask.max_tokens is not None and ask.max_tokens < n_ctx:
        return body
    changed: dict[str, Any] = json.loads(body)
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    held = [name for name in names if name in changed]
    if not held:
        return body
    return json.dumps(changed | dict.fromkeys(held, n_predict), ensure_ascii=False).encode("utf-8", "replace")
