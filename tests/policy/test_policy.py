"""Which calls run unasked: the decision by itself."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb.tools import Policy, Tool, ToolRegistry, prepare, tool


def delete_rows(table: str, count: int = 1) -> str:
    """Deletes."""
    return table


def look(table: str) -> str:
    """Looks."""
    return table


def judged(policy: Policy, *functions: Any, **arguments: Any) -> str:
    registry = ToolRegistry(*functions)
    name = registry.names()[0]
    call = {"type": "tool_call.done", "name": name, "arguments": arguments or {"table": "t"}, "tool_call_id": "1"}
    return policy.judge(prepare(registry, call)).action


ASKS = Tool.of(delete_rows, ask=True)
ALWAYS = Tool.of(delete_rows, ask="always")


@pytest.mark.parametrize(
    ("policy", "tool_", "expected"),
    [
        (Policy(), look, "allow"),
        (Policy(), ASKS, "ask"),
        (Policy(), ALWAYS, "ask"),
        (Policy(default="ask"), look, "ask"),
        (Policy(default="deny"), look, "deny"),
        (Policy(default="deny", allow="look"), look, "allow"),
        (Policy(allow="delete_rows"), ASKS, "allow"),
        (Policy(allow="delete_rows"), ALWAYS, "ask"),
        (Policy(allow="delete_rows", ask="delete_*"), ASKS, "ask"),
        (Policy(ask="delete_*"), delete_rows, "ask"),
        (Policy(ask="delete_?"), delete_rows, "allow"),
        (Policy(ask=delete_rows), delete_rows, "ask"),
        (Policy(ask=[look]), delete_rows, "allow"),
        (Policy(deny=delete_rows, ask="*", allow="*"), delete_rows, "deny"),
        (Policy(deny="*", decide=lambda name, arguments: "allow"), look, "deny"),
        (Policy(ask="look", decide=lambda name, arguments: "allow"), look, "ask"),
        (Policy(ask="look", decide=lambda name, arguments: "deny"), look, "deny"),
        (Policy(decide=lambda name, arguments: arguments["table"] == "t"), look, "allow"),
        (Policy(decide=lambda name, arguments: arguments["table"] != "t"), look, "deny"),
        (Policy(decide=lambda name, arguments: None, default="ask"), look, "ask"),
        (Policy(decide=lambda name, arguments: 1 / 0), look, "ask"),
        (Policy(decide=lambda name, arguments: "sure"), look, "ask"),
        (Policy(decide=lambda name, arguments: "allow"), ASKS, "allow"),
        (Policy(decide=lambda name, arguments: "allow"), ALWAYS, "ask"),
        (Policy(ask=("look", lambda arguments: arguments["table"] == "t")), look, "ask"),
        (Policy(ask=("look", lambda arguments: arguments["table"] == "u")), look, "allow"),
        (Policy(deny=("look", lambda arguments: arguments["nothing"])), look, "ask"),
        (Policy(allow=("delete_rows", lambda arguments: arguments["count"] < 2)), ASKS, "allow"),
    ],
)
def test_the_strongest_word_counts(policy: Policy, tool_: Any, expected: str) -> None:
    assert judged(policy, tool_) == expected


def test_arguments_are_judged_as_the_function_will_get_them() -> None:
    policy = Policy(deny=("delete_rows", lambda arguments: arguments["count"] > 10))
    assert judged(policy, delete_rows, table="t", count="11") == "deny"
    assert judged(policy, delete_rows, table="t") == "allow"


def test_a_test_that_changes_the_arguments_changes_nothing() -> None:
    def greedy(arguments: dict[str, Any]) -> bool:
        arguments.clear()
        return False

    policy = Policy(ask=("look", greedy), deny=("look", lambda arguments: arguments["table"] == "t"))
    assert judged(policy, look) == "deny"


def test_asking_widens_a_policy_and_leaves_the_old_one() -> None:
    policy = Policy()
    assert judged(policy.asking(["look"]), look) == "ask"
    assert judged(policy, look) == "allow"


def test_a_function_that_was_defined_anew_is_still_the_same_to_a_policy() -> None:
    namespace: dict[str, Any] = {}
    exec("def wipe(): ...", namespace)
    policy = Policy(ask=namespace["wipe"])
    exec("def wipe(): ...", namespace)
    assert judged(policy, namespace["wipe"], x=1) == "allow"  # wrong arguments: nothing to ask about
    call = {"type": "tool_call.done", "name": "wipe", "arguments": {}, "tool_call_id": "1"}
    assert policy.judge(prepare(ToolRegistry(namespace["wipe"]), call)).action == "ask"


@pytest.mark.parametrize("options", [{"default": "perhaps"}, {"unattended": "ask"}])
def test_a_word_that_means_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is one of"):
        Policy(**options)


@pytest.mark.parametrize("options", [{"ask": [3]}, {"deny": [("a", "b")]}, {"decide": "no"}])
def test_an_entry_that_means_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Policy(**options)


def test_the_decorator_says_that_a_tool_asks() -> None:
    @tool(ask=True, name="wipe_disk")
    def wipe() -> None: ...

    from mmsp_nb.tools import registry

    found = registry.get("wipe_disk")
    registry.remove("wipe_disk")
    assert found is not None and found.ask is True
    assert wipe() is None


def test_ask_is_refused_when_it_is_no_such_word() -> None:
    with pytest.raises(TypeError, match="ask is True, False or 'always'"):
        Tool.of(look, ask="sometimes")  # type: ignore[arg-type]
