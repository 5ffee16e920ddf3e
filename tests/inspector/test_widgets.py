"""The widgets without a front end: what is displayed where there is none, and what a notebook file would keep."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

import inspected

from mmsp_nb import Conversation, inspect, tracing
from mmsp_nb.notebook.inspector import History, chat
from mmsp_nb.notebook.trace_browser import TraceBrowser


def test_the_bundle_has_the_static_view_and_the_state_is_bounded():
    made = inspect(inspected.long(10_000))
    data, _ = made._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "Question 1999" in data["text/html"] and len(data["text/html"]) < 60_000
    assert data["text/plain"] == "Inspector of Conversation 'long' with quiet-model, 2000 turns"
    assert len(json.dumps(made.get_state(), default=str)) < 150_000, "the page's code, DOMPurify included"


def test_a_file_is_only_looked_at(tmp_path):
    path = inspected.long(10).save(tmp_path / "talk.jsonl")
    sent = []
    made = inspect(path)
    made._desk._send = sent.append
    made._handle_custom_msg({"op": "act", "name": "undo"}, [])
    assert sent[0]["error"] and len(made.conversation.turns) == 2
    with pytest.raises(TypeError, match="not int"):
        inspect(3)


def test_a_closed_widget_follows_no_longer():
    conversation = inspected.long(10)
    made = conversation.browse()
    assert len(conversation._watchers) == 1
    made.close()
    assert conversation._watchers == []


def test_a_chat_box_begins_a_conversation_or_goes_on_with_one():
    made = chat("demo", system="Be brief.")
    assert isinstance(made.conversation, Conversation) and made.conversation.system == "Be brief."
    assert chat(made.conversation).conversation is made.conversation
    with pytest.raises(TypeError):
        chat(made.conversation, system="x")


def test_traces_are_listed_and_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    for n in range(3):
        tracing.save(f"run/{n}", inspected.long(10).messages, {}, "some-model")
    browser = TraceBrowser()
    sent = []
    browser.send = lambda message, buffers=None: sent.append(message)
    browser._handle_custom_msg({"op": "list"}, [])
    assert sorted(row["id"] for row in sent[0]["files"]) == ["run/0.json", "run/1.json", "run/2.json"]
    browser._handle_custom_msg({"op": "open", "file": "run/1.json"}, [])
    browser._handle_custom_msg({"op": "hello"}, [])
    assert [message["op"] for message in sent[1:]] == ["opened", "state", "rows", "gauge"]
    browser._handle_custom_msg({"op": "open", "file": "../x"}, [])
    assert sent[-1]["error"]
    assert "run/2.json" in browser._repr_mimebundle_()[0]["text/html"] and repr(browser).startswith("3 traces in ")


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_what_is_no_folder_of_traces_is_refused_in_a_line(tmp_path):
    (tmp_path / "talk.jsonl").write_text("")
    refused = {
        tmp_path / "nowhere": (FileNotFoundError, "there is no folder .*nowhere"),
        tmp_path / "talk.jsonl": (NotADirectoryError, r"talk.jsonl is a file: mmsp_nb.inspect\("),
        5: (TypeError, "directory is the path of a folder with traces, not int"),
    }
    for directory, (kind, words) in refused.items():
        with pytest.raises(kind, match=words):
            TraceBrowser(directory)
        gc.collect()  # a widget that was not made is closed without a complaint


def test_the_code_of_the_trace_browser_is_one_module(tmp_path):
    path = tmp_path / "all.mjs"
    path.write_text(TraceBrowser(tmp_path)._esm)
    assert "import " not in [line[:7] for line in path.read_text().splitlines()]
    assert path.read_text().count("export default") == 1


def test_the_page_can_be_asked_for_on_the_command_line(tmp_path):
    command = [sys.executable, "-m", "mmsp_nb.traces", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "there is no directory" in done.stderr


def test_history_is_a_widget_and_its_twin_in_outputs_of_their_own(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    conversation = inspected.long(100)
    History(conversation, live=True)._ipython_display_()
    widget, twin = shown
    assert twin is conversation
    data, _ = widget._repr_mimebundle_()
    assert "text/html" not in data and "application/vnd.jupyter.widget-view+json" in data
    shown.clear()
    History(conversation, live=False)._ipython_display_()
    assert shown == [conversation]
