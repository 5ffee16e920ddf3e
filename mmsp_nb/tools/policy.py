"""`Policy`: which calls of a model may run unasked, which need a person's word, which never run. A pure decision.

Nothing that a model or a tool's result says changes a decision: it is made from the tool, its name and the validated
arguments alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, get_args

from mmsp_nb.protocol.suggestions import did_you_mean

if TYPE_CHECKING:
    from mmsp_nb.tools.calling import PreparedCall

__all__ = ["Action", "Decision", "Policy", "Unattended", "Verdict"]

Action = Literal["allow", "ask", "deny"]
Unattended = Literal["deny", "wait", "allow"]
Rule = str | Callable[..., Any] | tuple[str, Callable[[Mapping[str, Any]], bool]]
Decide = Callable[[str, Mapping[str, Any]], "Action | bool | None"]

ACTIONS: tuple[str, ...] = get_args(Action)
UNATTENDED: tuple[str, ...] = get_args(Unattended)


@dataclass(frozen=True)
class Decision:
    """What a policy says of one call; ``reason`` is for the person, and for the model when it is denied."""

    action: Action
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a person said of a call that needed a word.

    ``arguments`` are to be used in place of the model's; ``reason`` tells the model why it was denied.
    """

    approved: bool
    reason: str = ""
    arguments: Mapping[str, Any] | None = None


class Policy:
    """Which tool calls run unasked.

    ::

        Policy(ask=["delete_*", send_mail], deny=[("read_file", lambda arguments: ".env" in arguments["path"])])
        Policy(allow=["look_*"], default="ask")            # only what is listed runs unasked

    An entry is a name or a pattern with ``*`` and ``?``, a function that is a tool, or a pair of a pattern and a test
    of the arguments. Of several that fit, ``deny`` is stronger than ``ask``, and ``ask`` than ``allow``. A tool's own
    ``ask=True`` counts as an ``ask`` entry that an ``allow`` entry of its name overrules; ``ask="always"`` is
    overruled by nothing. Whatever a test or ``decide`` raises counts as "ask".

    Args:
        allow: What runs unasked even if ``default`` or the tool itself says "ask".
        ask: What needs a person's word.
        deny: What never runs; the model is told so.
        decide: ``decide(name, arguments) -> "allow" | "ask" | "deny" | None``, heard before ``allow`` and ``default``,
            after the others; True and False mean "allow" and "deny", None leaves it to the rest.
        default: For calls that nothing else speaks of: "allow", "ask" or "deny".
        unattended: What becomes of a call that needs a word where nobody can be asked (a script without a terminal,
            a notebook that is executed by a program): "deny" it and tell the model so, "wait" for
            `Conversation.approve`, or "allow" it, unless the tool says ``ask="always"``.

    Raises:
        TypeError, ValueError: an entry or a word that means nothing here.
    """

    def __init__(
        self,
        *,
        allow: Iterable[Rule] | Rule = (),
        ask: Iterable[Rule] | Rule = (),
        deny: Iterable[Rule] | Rule = (),
        decide: Decide | None = None,
        default: Action = "allow",
        unattended: Unattended = "deny",
    ) -> None:
        self.allow, self.ask, self.deny = _rules("allow", allow), _rules("ask", ask), _rules("deny", deny)
        if decide is not None and not callable(decide):
            raise TypeError("decide is a function of a tool's name and its arguments")
        self.decide = decide
        self.default: Action = _word("default", default, ACTIONS)  # type: ignore[assignment]
        self.unattended: Unattended = _word("unattended", unattended, UNATTENDED)  # type: ignore[assignment]

    def judge(self, call: PreparedCall) -> Decision:
        """The decision about one call. Never raises. A call that is refused already may "run": nothing happens."""
        tool = call.tool
        if tool is None or tool.internal or call.refused is not None:
            return Decision("allow")
        arguments, failed = call.values, list[str]()
        name, function = tool.name, tool.function
        if reason := _found(self.deny, name, function, arguments, failed):
            return Decision("deny", reason)
        asked = _found(self.ask, name, function, arguments, failed)
        decided = self._decided(name, arguments)
        if decided is not None and decided.action == "deny":
            return decided
        allowed = _found(self.allow, name, function, arguments, failed)
        if tool.ask == "always":
            asked = asked or f"{name} always asks"
        if asked or failed:
            return Decision("ask", asked or failed[0])
        if decided is not None:
            return decided
        if allowed:
            return Decision("allow")
        if tool.ask:
            return Decision("ask", f"{name} asks before it runs")
        return Decision(self.default, "" if self.default == "allow" else "the policy's default")

    def asking(self, names: Iterable[str]) -> Policy:
        """This policy, and beyond it ``names`` need a word."""
        wider = copy.copy(self)
        wider.ask = [*self.ask, *_rules("ask", names)]
        return wider

    def _decided(self, name: str, arguments: Mapping[str, Any]) -> Decision | None:
        if self.decide is None:
            return None
        try:
            answer = self.decide(name, dict(arguments))
        except Exception as error:
            return Decision("ask", f"the policy's function failed: {type(error).__name__}")
        if answer is None:
            return None
        if isinstance(answer, bool):
            answer = "allow" if answer else "deny"
        if answer not in ACTIONS:
            return Decision("ask", f"the policy's function returned {answer!r}"[:80])
        return Decision(answer, "the policy's function")

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in ("allow", "ask", "deny") if getattr(self, name)]
        return f"Policy({', '.join([*parts, f'default={self.default!r}', f'unattended={self.unattended!r}'])})"


def _word(parameter: str, value: Any, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ValueError(f"{parameter} is one of {', '.join(words)}, not {value!r}{did_you_mean(value, words)}")
    return str(value)


def _rules(parameter: str, given: Any) -> list[Rule]:
    if isinstance(given, str) or callable(given) or _is_pair(given):
        given = [given]
    rules = list(given)
    for rule in rules:
        if not (isinstance(rule, str) or callable(rule) or _is_pair(rule)):
            raise TypeError(f"{parameter} takes names, functions and pairs (name, test of the arguments), not {rule!r}")
    return rules


def _is_pair(rule: Any) -> bool:
    return isinstance(rule, tuple) and len(rule) == 2 and isinstance(rule[0], str) and callable(rule[1])


def _found(rules: list[Rule], name: str, function: Any, arguments: Mapping[str, Any], failed: list[str]) -> str:
    """Why one of the rules fits, or nothing. A test that raises is noted in ``failed``."""
    from mmsp_nb.tools.registries import same_function

    for rule in rules:
        if isinstance(rule, str):
            if fnmatchcase(name, rule):
                return f"a rule for {rule}"
        elif isinstance(rule, tuple):
            if not fnmatchcase(name, rule[0]):
                continue
            try:
                if rule[1](dict(arguments)):
                    return f"a rule for the arguments of {rule[0]}"
            except Exception as error:
                failed.append(f"a test of the arguments of {rule[0]} failed: {type(error).__name__}")
        elif same_function(rule, function):
            return f"a rule for {name}"
    return ""
