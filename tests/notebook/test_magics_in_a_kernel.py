"""The newer magics in a real kernel, where cells are awaited: ids, the next cell, a rerun that is interrupted."""

from __future__ import annotations

from typing import Any

import pytest
from kernels import Cell, Kernel

pytestmark = pytest.mark.kernel


def execute(kernel: Kernel, name: str, code: str) -> Cell:
    """Run a cell under an id, as a front end does."""
    original = kernel.client.session.msg

    def with_id(kind: str, *given: Any, **named: Any) -> Any:
        message = original(kind, *given, **named)
        message["metadata"]["cellId"] = name
        return message

    kernel.client.session.msg = with_id  # type: ignore[method-assign]
    try:
        return kernel.run(code)
    finally:
        kernel.client.session.msg = original  # type: ignore[method-assign]


def test_an_edit_is_drawn_and_applied(kernel: Kernel) -> None:
    execute(kernel, "ab12", "x = [i for i in range(3)]")
    kernel.run("talk([text('```python\\nx = list(range(3))\\n```')])")
    cell = execute(kernel, "ask1", "%%mmsp --edit ab12\nuse list()")
    assert cell.status == "ok", cell.evalue
    [diff] = [data for kind, data in cell.screen() if kind == "diff"]
    assert "-x = [i for i in range(3)]\n+x = list(range(3))" in diff["text/plain"]
    assert "background:rgba(46,160,67,.2)" in diff["text/html"]
    applied = kernel.run("%mmsp apply")
    assert applied.payload == [{"source": "set_next_input", "text": "x = list(range(3))", "replace": False}]


def test_a_prompt_knows_cells_by_their_ids(kernel: Kernel) -> None:
    execute(kernel, "cd34", "y = {1: '{{x}}'}")
    kernel.run("talk([text('ok')])")
    assert execute(kernel, "ask2", '%%mmsp\n>>> {{cell("cd34")}}').status == "ok"
    sent = kernel.value("client.requests[0]['content_items'][0]['text']")
    assert sent == ">>> y = {1: '{{x}}'}"


def test_stale_turns_are_asked_again_and_the_rest_waits_after_an_interrupt(kernel: Kernel) -> None:
    scripts = ["[text('one')]", "[text('two')]", "[text('three')]", "[text('ONE')]", "[text('TWO')]"]
    kernel.run(f"talk({', '.join(scripts)}, [text('THR'), 60], [text('THREE')])")
    for name, prompt in (("a", "first"), ("b", "second"), ("c", "third"), ("a", "changed")):
        assert execute(kernel, name, f"%%mmsp\n{prompt}").status == "ok"
    assert kernel.value("[turn.stale for turn in main.turns]") == [False, True, True]

    def three(message: dict[str, Any]) -> bool:
        return "THR" in str(message["content"].get("data", ""))

    stopped = kernel.run("%mmsp rerun stale", interrupt_when=three)
    assert stopped.status == "error" and stopped.ename == "KeyboardInterrupt"
    assert "2 of 2: third" in stopped.streams
    assert stopped.streams.endswith("%mmsp retry asks the last one again\n")
    assert kernel.value("[turn.text for turn in main.turns]") == ["ONE", "TWO", "THR"]
    assert kernel.value("[turn.text for turn in main.branches['main~2']]") == ["ONE", "two", "three"]
    assert kernel.value("[turn.cell for turn in main.turns]") == ["a", "b", "c"]
    assert "nothing is stale" in kernel.run("%mmsp rerun stale").streams
    again = kernel.run("%mmsp retry")
    assert again.status == "ok", again.evalue
    assert kernel.value("[turn.text for turn in main.turns]") == ["ONE", "TWO", "THREE"]


def test_help_of_a_cell_without_a_body_and_of_a_line(kernel: Kernel) -> None:
    assert "%%mmsp [options]" in kernel.run("%%mmsp --help").streams
    assert "%mmsp SUBCOMMAND" in kernel.run("%mmsp --help").streams
    assert kernel.run("%%mmsp").evalue == "the prompt is empty: write it below the %%mmsp line"


def test_an_expression_that_takes_long_is_interrupted_at_once(kernel: Kernel) -> None:
    kernel.run("import time\ndef slow():\n    print('begun', flush=True)\n    time.sleep(30)")

    def begun(message: dict[str, object]) -> bool:
        return message["msg_type"] == "stream"

    cell = kernel.run("%%mmsp\n{{slow()}}", interrupt_when=begun)
    assert cell.status == "error" and cell.ename == "KeyboardInterrupt"
    assert cell.after_interrupt is not None and cell.after_interrupt < 10
    kernel.run("talk([text('ok')])")
    assert kernel.run("%%mmsp\nhello").texts() == "ok"
