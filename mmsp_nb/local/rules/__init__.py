"""The mind of the demo model: rules that read an `Ask` and decide what is said. No I/O, no clock, no chance."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..wire.neutral import Ask, Call, Finish, Result, Say, Text, Thinking, Tool, Turn, Usage
from ..wire.pieces import count, limit
from . import failing, length, memory, results, talk
from .choosing import pick, ranked
from .faults import Fault, help_text, ordered, without_order
from .filling import Filled, fill
from .shapes import shaped
from .talk import SIGNATURE

__all__ = ["SIGNATURE", "Plan", "Reply", "plan_calls", "reply", "usage_of"]

_FOLLOW_UP = re.compile(
    r"(?i)^\W*(?:and|what about|how about|now|also|or|then|same (?:for|in)|the same (?:for|in))\b.{1,80}$"
)
_PROMISE = re.compile(r"(?i)\bthink (?:step by step|hard|carefully|first|about it)\b|\bstep by step\b")


LONGEST = 2_000
"""How much of a text the rules read, in characters: of a longer one the beginning and the end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of one tool that a prompt asks for."""

    tool: Tool
    filled: Filled


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer: what is said, why it ends, what it costs, and how it fails, if it is to."""

    says: Sequence[Say]
    finish: Finish
    usage: Usage
    fault: Fault | None = field(default=None)


def plan_calls(ask: Ask, prompt: str) -> list[Plan]:
    """The tool calls that ``prompt`` asks for, with their arguments; empty if it asks for none.

    A plan may have required parameters missing: then the user is to be asked for them.
    """
    prompt = gist(prompt)
    forced = ask.tool_choice == "required" or isinstance(ask.tool_choice, tuple)
    tools = pick(prompt, ask.tools, ask.tool_choice)
    plans = [Plan(tool, fill(prompt, tool, forced=forced)) for tool in tools]
    if plans and plans[0].filled.missing:
        # another tool that fits nearly as well may be one for which the prompt says enough
        for other in ranked(prompt, ask.tools)[:4]:
            filled = fill(prompt, other.tool)
            near = other.score >= 2.0 and any(filled.calls[0])
            if ask.tool_choice == "auto" and near and not filled.missing and other.tool.name != plans[0].tool.name:
                return [Plan(other.tool, filled)]
    if not plans and _FOLLOW_UP.match(prompt) and ask.tool_choice == "auto":
        plans = _follow_up(ask, prompt)
    complete = [plan for plan in plans if not plan.filled.missing]
    return complete or plans[:1]


def gist(text: str) -> str:
    """The part of ``text`` that the rules read. Their patterns are made for prompts, not for books."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 500]}\n…\n{text[-497:]}"


def _read(ask: Ask) -> Ask:
    """The request with every long text cut to its gist."""
    if all(len(turn.text) <= LONGEST for turn in ask.turns):
        return ask
    turns = tuple(
        Turn(turn.role, tuple(Text(gist(part.text)) if isinstance(part, Text) else part for part in turn.parts))
        for turn in ask.turns
    )
    return replace(ask, turns=turns)


def _follow_up(ask: Ask, prompt: str) -> list[Plan]:
    """ "And in Rome?": the last call again, with what the prompt changes about it."""
    by_name = {tool.name: tool for tool in ask.tools}
    for turn in memory.last_calls(ask)[:1]:
        last = turn.calls[-1]
        tool = by_name.get(last.name)
        if tool is not None:
            filled = fill(prompt, tool, previous=last.arguments)
            if any(call != dict(last.arguments) for call in filled.calls):
                return [Plan(tool, filled)]
    return []


def reply(ask: Ask) -> Reply:
    """The demo's answer to ``ask``: always the same for the same request."""
    asked = ask
    trace = failing.find(ask.prompt) if ask.schema is None else None
    ask = _read(_prompted(ask, trace.question) if trace else ask)
    fault = ordered(ask.prompt)
    if fault:
        ask = _prompted(ask, without_order(ask.prompt) or "Hello")
    says = _says(ask, fault, trace.explanation if trace else "")
    if (ask.think or (fault and fault.kind == "think") or _PROMISE.search(ask.prompt)) and says:
        says = [Thinking(_thoughts(ask, says)), *says]
    if ask.model.endswith(":thinking") and says and not isinstance(says[0], Thinking):
        says = [Thinking(_thoughts(ask, says)), *says]
    says = [replace(say, id=ask.ident("call_", at)) if isinstance(say, Call) else say for at, say in enumerate(says)]
    says, cut = limit(says, ask.max_tokens)
    called = any(isinstance(say, Call) for say in says)
    finish: Finish = "length" if cut else "tool_call" if called else "stop"
    return Reply(says, finish, usage_of(asked, says), fault)


def _prompted(ask: Ask, prompt: str) -> Ask:
    """The request with another text of its last prompt."""
    for at in range(len(ask.turns) - 1, -1, -1):
        turn = ask.turns[at]
        if turn.role == "user" and turn.text.strip():
            others = tuple(part for part in turn.parts if not isinstance(part, Text))
            changed = Turn("user", (*others, Text(prompt)))
            return replace(ask, turns=(*ask.turns[:at], changed, *ask.turns[at + 1 :]))
    return ask


def _says(ask: Ask, fault: Fault | None, explanation: str) -> list[Say]:
    kind = fault.kind if fault else ""
    if kind == "help":
        return [Text(f"{help_text()}\n\n{SIGNATURE}")]
    if kind == "empty":
        return []
    fresh = _fresh(ask)
    if not fresh and kind == "unknown tool":
        return [Call("no_such_tool", {"reason": "demo"})]
    if not fresh and kind == "broken arguments":
        return [Call(ask.tools[0].name if ask.tools else "broken", {}, raw='{"broken": "no end')]
    plans = _plans(ask, fresh)
    calls: list[Say] = [
        Call(plan.tool.name, call) for plan in plans for call in plan.filled.calls if not plan.filled.missing
    ]
    if calls:
        return calls if ask.parallel else calls[:1]
    if ask.schema is not None:
        return [Text(json.dumps(_shaped(ask, fresh), ensure_ascii=False, indent=2))]
    return [Text(f"{_prose(ask, fresh, plans, explanation).rstrip()}\n\n{SIGNATURE}")]


def _fresh(ask: Ask) -> list[Result]:
    """The results to answer from. Calls that failed do not outweigh new text of the user."""
    found = ask.new_results()
    return [] if ask.turns and ask.turns[-1].text.strip() and all(map(results.failed, found)) else found


def _plans(ask: Ask, fresh: Sequence[Result]) -> list[Plan]:
    """What to call. Once there are results, nothing more, unless new text came with them."""
    if fresh and not ask.turns[-1].text.strip():
        return []
    plans = plan_calls(ask, ask.prompt)
    known = results.remembered(ask)
    made = [(result.name, dict(result.arguments)) for result in known]
    new = any(
        (plan.tool.name, call) not in made for plan in plans if not plan.filled.missing for call in plan.filled.calls
    )
    if ask.tool_choice == "auto" and not new and (fresh or results.compare(ask.prompt, known)):
        return []
    return plans


def _shaped(ask: Ask, fresh: Sequence[Result]) -> Any:
    prompt = ask.prompt + "".join(f"\n{results.label(result)}: {result.text}" for result in fresh)
    return shaped(prompt, ask.schema or {})


def _prose(ask: Ask, fresh: Sequence[Result], plans: Sequence[Plan], explanation: str) -> str:
    prompt = ask.prompt
    missing = plans[0].filled.missing if plans else []
    if missing:
        return _question(plans[0].tool, missing)
    compared = results.compare(prompt, fresh or results.remembered(ask))
    if fresh:
        told = results.answer(fresh)
        return f"{told}\n\n{compared}" if compared else told
    said = explanation or compared or memory.recall(ask) or memory.acknowledge(prompt)
    said = said or length.write(prompt) or talk.reply(ask)
    return talk.styled(said.replace(SIGNATURE, "").rstrip(), ask.system)


def _question(tool: Tool, missing: Sequence[str]) -> str:
    properties = tool.parameters.get("properties")
    described = []
    for name in missing:
        schema = properties.get(name) if isinstance(properties, Mapping) else None
        about = schema.get("description") if isinstance(schema, Mapping) else None
        described.append(f"**{name}**" + (f" ({results.plain(str(about), 80)})" if about else ""))
    needed = " and ".join(filter(None, [", ".join(described[:-1]), described[-1]]))
    return f"I can call `{tool.name}` for that, but I still need {needed}. What should I use?"


def _thoughts(ask: Ask, says: Sequence[Say]) -> str:
    """The demo's reasoning: what its rules really did."""
    prompt = results.plain(ask.prompt, 80)
    thoughts = [f"The user says “{prompt}”."] if prompt else ["The user says nothing."]
    calls = [say for say in says if isinstance(say, Call)]
    fresh = _fresh(ask)
    if calls:
        for name in dict.fromkeys(call.name for call in calls):
            number = sum(call.name == name for call in calls)
            times = "once" if number == 1 else f"{number} times, for {number} different values"
            thoughts.append(f"The words fit the tool {name}, so I call it {times}.")
    elif fresh:
        thoughts.append(f"I have {len(fresh)} result(s) now. That is enough: I put them into words.")
    elif ask.tools:
        thoughts.append(f"None of the {len(ask.tools)} tool(s) is to be called for this, so I answer myself.")
    else:
        thoughts.append("There are no tools, so I look for a rule that fits and answer with it.")
    return " ".join(thoughts)


def usage_of(ask: Ask, says: Sequence[Say]) -> Usage:
    """Token counts: everything up to the last answer counts as cached."""
    fixed = count(ask.system) + sum(
        count(tool.name) + count(tool.description) + count(json.dumps(tool.parameters, ensure_ascii=False))
        for tool in ask.tools
    )
    sizes = [_size(turn) for turn in ask.turns]
    answered = [at for at, turn in enumerate(ask.turns) if turn.role == "assistant"]
    cached = fixed + sum(sizes[: answered[-1] + 1]) if answered else 0
    return Usage(
        input=fixed + sum(sizes),
        cached=cached,
        output=sum(
            count(say.json if isinstance(say, Call) else say.text) for say in says if not isinstance(say, Thinking)
        ),
        thoughts=sum(count(say.text) for say in says if isinstance(say, Thinking)),
    )


def _size(turn: Turn) -> int:
    total = 3
    for part in turn.parts:
        if isinstance(part, Call):
            total += count(part.name) + count(part.json)
        elif hasattr(part, "text"):
            total += count(part.text)
        else:
            total += 256
    return total
