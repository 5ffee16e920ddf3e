"""The reference package's own client behind ``--client``, in a real kernel: streamed, with a tool, and stopped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel

from mmsp_nb.testing import FakeProvider, Gate, Reply
from mmsp_nb.testing.parts import call, text
from mmsp_nb.testing.wire import chat

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import environments

pytestmark = [pytest.mark.reference, pytest.mark.kernel]

TOOL = '''
from mmsp_nb import tool

@tool
def depth(port: str) -> float:
    """The depth of a port in metres."""
    print("looking at", port)
    return 6.5
'''


def reply(*parts: Any) -> Reply:
    return Reply.stream(chat.frames(list(parts)))


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, provider: FakeProvider) -> Iterator[Kernel]:
    if not environments.is_made("reference"):
        pytest.skip("make beside makes .venvs/reference")
    [site] = environments.python_of("reference").parents[1].glob("lib/python*/site-packages")
    kernel = Kernel({"MMSP_NB_LIVE": "1", "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))})
    try:
        cell = kernel.run(
            f"import sys; sys.path.append({str(site)!r})\nfrom mmsp import AutoLLMClient\n%load_ext mmsp_nb\n"
            f"theirs = AutoLLMClient('any-model', 'key', {provider.url('/v1')!r}, 'openai-chat')\n{TOOL}",
            timeout=120,
        )
        assert cell.status == "ok", cell.traceback
        yield kernel
    finally:
        kernel.close()


def test_it_is_the_reference_that_answers(watched: Kernel) -> None:
    assert watched.value("type(theirs).__module__.partition('.')[0]") == "mmsp"


def test_its_answer_is_drawn_while_it_comes(watched: Kernel, provider: FakeProvider) -> None:
    gate, parts = Gate(), [text("High ", "tide ", "at noon.")]
    whole = reply(*parts)
    provider.reset()
    provider.add(whole.hold(gate, at=whole.content.index(b"at noon")))
    seen: list[str] = []

    def watch(message: dict[str, Any]) -> bool:
        drawn = message["content"].get("data", {}).get("text/html", "")
        if "High" in drawn and "noon" not in drawn:
            seen.append(drawn)
            gate.open()
        return False

    cell = watched.run("%%mmsp --client theirs --new\nWhen is high tide?", interrupt_when=watch)
    assert cell.status == "ok" and seen
    assert cell.texts() == "High tide at noon."


def test_it_calls_a_function_of_the_notebook_and_goes_on(watched: Kernel, provider: FakeProvider) -> None:
    provider.reset()
    provider.add(reply(call("depth", {"port": "Brest"})), reply(text("It is 6.5 m deep.")), reply(text("Yes.")))
    cell = watched.run("%%mmsp --client theirs --new\nHow deep is Brest?")
    assert cell.status == "ok", cell.evalue
    assert cell.streams == "looking at Brest\n" and cell.texts() == "It is 6.5 m deep."
    assert watched.value("[(c.name, c.result) for c in _mmsp.calls]") == [["depth", 6.5]]
    watched.run("%%mmsp\nSure?")
    first, second, third = (request.body["messages"] for request in provider.requests)
    assert [m["role"] for m in first][-1:] == ["user"]
    assert [m["role"] for m in second][-2:] == ["assistant", "tool"] and "6.5" in second[-1]["content"]
    assert [m["role"] for m in third][-3:] == ["tool", "assistant", "user"]


def test_it_can_be_stopped_and_asked_again(watched: Kernel, provider: FakeProvider) -> None:
    gate, whole = Gate(), reply(text("High ", "tide ", "at noon."))
    provider.reset()
    provider.add(whole.hold(gate, at=whole.content.index(b"at noon")), reply(text("Noon.")))
    cell = watched.run(
        "%%mmsp --client theirs --new\nWhen?",
        interrupt_when=lambda message: "tide" in message["content"].get("data", {}).get("text/html", ""),
    )
    gate.open()
    assert cell.status == "error" and cell.texts().startswith("High tide")
    again = watched.run("%%mmsp\nAnd when?")
    assert again.status == "ok" and again.texts() == "Noon."
