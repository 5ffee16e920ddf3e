"""`map` and `amap` in the cells of a real kernel: while its loop runs, with its stop button, and again after it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from echoes import Echo

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    path = Path(__file__).parents[1] / "notebook" / "kernels.py"
    spec = importlib.util.spec_from_file_location("notebook_kernels", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["notebook_kernels"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.Kernel({})
    yield found
    found.client.stop_channels()
    found.manager.shutdown_kernel(now=True)


def begin(kernel: Any, echo: Echo) -> None:
    made = kernel.run(
        "import mmsp_nb\nfrom mmsp_nb.mapping.journal import memory; memory.clear()\n"
        f"client = mmsp_nb.AutoLLMClient('any', 'key', {echo.provider.url('/v1')!r}, 'openai-chat')\n"
        "ROWS = [f'row {i}' for i in range(40)]"
    )
    assert made.status == "ok", made.traceback


def test_importing_the_package_does_not_load_the_rows(kernel: Any) -> None:
    kernel.run("import sys, mmsp_nb")
    assert kernel.value("[name for name in sys.modules if name.startswith(('mmsp_nb.mapping', 'tqdm'))]") == []


@pytest.mark.parametrize("call", ["mmsp_nb.map", "await mmsp_nb.amap"])
def test_a_cell_asks_rows_with_a_bar_and_shows_the_result(kernel: Any, echo: Echo, call: str) -> None:
    begin(kernel, echo)
    cell = kernel.run(f"result = {call}(ROWS, client=client, progress=True)\nresult")
    assert cell.status == "ok", cell.traceback
    [shown] = [message["content"]["data"] for message in cell.messages if message["msg_type"] == "execute_result"]
    assert shown["text/plain"].startswith("40 of 40 rows answered by any") and "<table>" in shown["text/html"]
    assert any("widget-view" in kind for message in cell.drawn for kind in message["content"]["data"])
    assert len(echo.order) == 40


@pytest.mark.parametrize("call", ["mmsp_nb.map", "await mmsp_nb.amap"])
def test_the_stop_button_ends_the_cell_and_the_same_cell_goes_on(kernel: Any, echo: Echo, call: str) -> None:
    begin(kernel, echo)
    reached = []

    def rule(prompt: str) -> None:
        if len(echo.order) == 15 and not reached:
            reached.append(True)
            kernel.manager.interrupt_kernel()

    echo.rules.append(rule)
    code = f"result = {call}(ROWS, client=client, concurrency=2)"
    stopped = kernel.run(code)
    assert stopped.status == "error" and stopped.ename in ("KeyboardInterrupt", "CancelledError")
    assert "rows are answered. The same call again asks only the others" in stopped.streams
    had = kernel.value("[v for v in mmsp_nb.mapping.unfinished() if isinstance(v, str)]")
    assert len(had) >= 10
    assert kernel.run(code).status == "ok"
    assert kernel.value("list(result)") == [f"<row {i}>" for i in range(40)]
    assert all(echo.asked[value[1:-1]] == 1 for value in had) and len(echo.order) <= 42
