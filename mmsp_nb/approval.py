"""What stands between a model's calls and their functions: the policy's word, and a person's where it wants one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mmsp_nb.protocol.errors import UnsupportedOperationError
from mmsp_nb.protocol.items import Item
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools import Policy, PreparedCall, Tool, ToolRegistry, Verdict, prepare

__all__ = ["Approve", "Clearance", "PendingCall", "Wait", "approved", "clear", "denied"]

UNATTENDED = (
    "Not run: {reason}, and nobody can be asked here. Do without it, and say in your answer that it was not done."
)
DENIED = "Not run: the user has denied this call{reason}. Do not repeat it; go on without it, or ask the user."
FORBIDDEN = "Not run: the policy of this conversation denies it ({reason}). Do not repeat it."


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for a person's word. ``reason`` says why it does.

    ``index`` is its place among the calls of its response.
    """

    call: Item
    tool: Tool
    reason: str = ""
    index: int = 0

    @property
    def id(self) -> str:
        call_id: str = self.call["tool_call_id"]
        return call_id

    @property
    def name(self) -> str:
        name: str = self.call["name"]
        return name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the model gave them, all of them."""
        arguments: dict[str, Any] = self.call["arguments"]
        return arguments

    def __str__(self) -> str:
        """The call in full, an argument a line, as JSON: nothing in a string can look like something else."""
        written = [
            f"    {name} = {json.dumps(value, ensure_ascii=True, default=repr)}"
            for name, value in self.arguments.items()
        ]
        return "\n".join([f"{self.name}(", *written, ")"]) if written else f"{self.name}()"


Approve = Callable[[list[PendingCall]], Awaitable["Sequence[Verdict | None]"]]
"""Asks a person: a verdict for each call, in order. None leaves it open."""

Wait = Literal["wait"]
"""In place of an `Approve`: the answer ends there, and goes on when somebody has decided."""


@dataclass
class Clearance:
    """The calls of one response, ready to run; or, if ``open`` is not empty, held until those are decided."""

    prepared: list[PreparedCall]
    open: list[PendingCall] = field(default_factory=list)


async def clear(
    registry: ToolRegistry,
    calls: Sequence[Item],
    policy: Policy,
    approve: Approve | Wait | None,
    verdicts: Mapping[int, Verdict] | None = None,
) -> Clearance:
    """Prepare ``calls`` and find out which of them may run.

    Args:
        registry: The tools.
        calls: The calls of one response, in order.
        policy: Judges each call.
        approve: Who is asked; None when nobody can be, then ``policy.unattended`` holds.
        verdicts: What was decided before, by the index of the call.
    """
    verdicts = verdicts or {}
    cleared = Clearance([])
    asking: list[int] = []
    for index, call in enumerate(calls):
        verdict = verdicts.get(index)
        prepared = _prepared(registry, call, verdict)
        cleared.prepared.append(prepared)
        decision = policy.judge(prepared)
        if decision.action == "deny":
            prepared.deny(FORBIDDEN.format(reason=decision.reason))
        elif verdict is not None:
            if not verdict.approved:
                prepared.deny(_denied(verdict))
        elif decision.action == "ask":
            asking.append(index)
            assert prepared.tool is not None
            cleared.open.append(PendingCall(call, prepared.tool, decision.reason, index))
    if not cleared.open or approve == "wait" or (approve is None and policy.unattended == "wait"):
        return cleared
    if approve is None:
        for index, pending in zip(asking, cleared.open, strict=True):
            if policy.unattended == "deny" or pending.tool.ask == "always":
                cleared.prepared[index].deny(UNATTENDED.format(reason=pending.reason))
        return Clearance(cleared.prepared)
    answers = list(await approve(cleared.open))
    answers += [None] * (len(asking) - len(answers))
    left: list[PendingCall] = []
    for index, pending, answer in zip(asking, cleared.open, answers, strict=False):
        if answer is None:
            left.append(pending)
        elif not answer.approved:
            cleared.prepared[index].deny(_denied(answer))
        else:
            prepared = cleared.prepared[index] = _prepared(registry, pending.call, answer)
            decision = policy.judge(prepared)
            if decision.action == "deny":  # edited into something that never runs
                prepared.deny(FORBIDDEN.format(reason=decision.reason))
    return Clearance(cleared.prepared, left)


def approved(
    waiting: Sequence[PendingCall], which: Sequence[str], arguments: Mapping[str, Any] | None
) -> dict[int, Verdict]:
    """Verdicts that let the calls of ``which`` run, or all of them. They are keyed by `PendingCall.index`.

    Raises UnsupportedOperationError when there is no such call, or when ``arguments`` are meant for several.
    """
    _some(waiting, "approve")
    for each in which:
        if not any(each in (call.id, call.name) for call in waiting):
            near = did_you_mean(each, [call.name for call in waiting])
            raise UnsupportedOperationError(f"no call {each!r} waits for approval{near}", operation="approve")
    chosen = [call for call in waiting if not which or call.id in which or call.name in which]
    if arguments is not None and len(chosen) != 1:
        raise UnsupportedOperationError(
            f"arguments are for one call, and {len(chosen)} wait: approve(id, arguments=...)", operation="approve"
        )
    verdicts = {call.index: Verdict(False, "only others were approved") for call in waiting}
    return verdicts | {call.index: Verdict(True, arguments=arguments) for call in chosen}


def denied(waiting: Sequence[PendingCall], reason: str = "") -> dict[int, Verdict]:
    """Verdicts that deny all calls that wait. Raises UnsupportedOperationError when none does."""
    _some(waiting, "deny")
    return {call.index: Verdict(False, reason) for call in waiting}


def _some(waiting: Sequence[PendingCall], operation: str) -> None:
    if not waiting:
        raise UnsupportedOperationError(f"nothing to {operation}: no call waits for a word", operation=operation)


def _prepared(registry: ToolRegistry, call: Item, verdict: Verdict | None) -> PreparedCall:
    return prepare(registry, call, verdict.arguments if verdict is not None and verdict.approved else None)


def _denied(verdict: Verdict) -> str:
    return DENIED.format(reason=f": {verdict.reason}" if verdict.reason else "")
