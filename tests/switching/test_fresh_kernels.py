"""A conversation through four providers in a kernel, saved; loaded in a fresh kernel, forked, continued on a fifth."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from switch_kinds import KINDS, picture
from test_switching_conversation import where
from wire_rules import check

from mmsp_nb import diff, load
from mmsp_nb.testing import FakeProvider

pytestmark = pytest.mark.kernel

FOUR = ("anthropic-official", "openai-official", "google-official", "openai-chat")
FIFTH = "moonshot-official"

SETUP = """
%load_ext mmsp_nb
from mmsp_nb import Conversation, load, tool

@tool
def tide_table(port: str) -> str:
    "When is high tide?"
    return f"high tide in {port}"
"""
FIRST = """
chat = Conversation({model!r}, tools=[tide_table], system="Be brief.", **{options!r})
chat.ask([{prompt!r}, {picture!r}])
"""
NEXT = """
print(chat.switch({model!r}, **{options!r}))
chat.ask([{prompt!r}, {picture!r}])
"""
SAVE = "chat.save({path!r}); print(len(chat.turns), chat.usage)"
LOAD = """
chat = load({path!r}, tools=[tide_table], api_key="key", base_url={base_url!r})
fork = chat.fork(at=2)
report = fork.switch({model!r}, **{options!r})
answer = fork.ask("fifth: tides?")
fork.save({fork!r})
"""
SHOW = "print(answer.text, len(chat.turns), len(fork.turns), bool(report), fork.turns[0].state, fork.turns[-1].model)"


def run(*cells: str) -> list[str]:
    """The printed texts of the cells of a new kernel, in order; a cell that fails fails the test."""
    made = [nbformat.v4.new_code_cell(cell) for cell in (SETUP, *cells)]
    notebook = nbformat.v4.new_notebook(cells=made)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python", "language": "python"}
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    return [
        "".join(output["text"] for output in cell.outputs if output["output_type"] == "stream")
        for cell in notebook.cells[1:]
    ]


def test_four_providers_a_file_a_fresh_kernel_a_fork_and_a_fifth(
    fake_provider: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name == "PYTEST_CURRENT_TEST"]:
        monkeypatch.delenv(name)
    path, forked = tmp_path / "talk.jsonl", tmp_path / "fork.jsonl"
    cells: list[str] = []
    for name in FOUR:
        kind = KINDS[name]
        fake_provider.add(kind.asks(name), kind.says(name))
        values: dict[str, Any] = {"model": kind.model, "options": where(kind, fake_provider), "picture": picture()}
        cells.append((NEXT if cells else FIRST).format(prompt=f"{name}: tides?", **values))
    printed = run(*cells, SAVE.format(path=str(path)))
    assert printed[-1].startswith("4 {")
    assert all("reasoning" in text or "signature" in text or "thinking" in text for text in printed[1:4]), printed

    fifth = KINDS[FIFTH]
    fake_provider.reset()
    fake_provider.add(fifth.asks("fifth"), fifth.says("fifth"))
    options = where(fifth, fake_provider)
    load_it = LOAD.format(
        path=str(path), fork=str(forked), base_url=fake_provider.url("/v1"), model=fifth.model, options=options
    )
    assert run(load_it, SHOW)[-1] == f"fifth: high tide. 4 4 True done {fifth.model}\n"
    for request in fake_provider.requests:
        check(fifth, request.body, set())
    sent = json.dumps(fake_provider.last.body)
    assert all(f"{name}: tides?" in sent for name in FOUR[:3]) and f"{FOUR[3]}: tides?" not in sent

    before, after = (load(each, api_key="key", base_url=fake_provider.url("/v1")) for each in (path, forked))
    assert [pair.status for pair in diff(before, after)] == ["same", "same", "same", "changed"]
    assert [turn.client_type for turn in after.turns] == [*FOUR[:3], FIFTH]
    assert after.turns[0].history == before.turns[0].history, "signatures of the first vendor are kept"
