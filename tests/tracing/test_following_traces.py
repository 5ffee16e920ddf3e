"""A trace that is being written is followed: by the page on loopback, and by the browser in a notebook."""

from __future__ import annotations

import gc
import json
import threading
import time
import urllib.request
import weakref

import pytest

from mmsp_nb import Conversation, tracing
from mmsp_nb.notebook import file_view
from mmsp_nb.notebook.file_view import FileView, every
from mmsp_nb.notebook.trace_browser import TraceBrowser
from mmsp_nb.testing import streams
from mmsp_nb.testing.plugin import fake_provider  # noqa: F401
from mmsp_nb.traces import TracePage


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(file_view, "EVERY", 0.01)
    return tmp_path


@pytest.fixture
def chat(fake_provider):  # noqa: F811
    fake_provider.add(*[streams.reply("text", "chat")] * 9)
    where = {"client_type": "openai-chat", "api_key": "k", "base_url": fake_provider.url("/v1")}
    return Conversation("some-model", config={"trace_id": "run/1"}, **where)


def texts(sent):
    """The texts of all rows that were sent."""
    return [row.get("text", "") for message in sent if message["op"] == "rows" for row in message["rows"]]


def test_a_page_that_polls_is_told_of_new_turns(chat, directory):
    chat.ask("first question")
    with TracePage(directory) as page:

        def post(message):
            body = json.dumps({"file": "run/1.json", "view": "1", "message": message}).encode()
            root = page.url.partition("?")[0]
            request = urllib.request.Request(root + "desk", body, {"x-mmsp-token": page.token})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read())

        assert [message["op"] for message in post({"op": "hello"})] == ["state", "rows", "gauge"]
        assert post({"op": "poll"}) == []
        chat.ask("second question")
        state, stale = post({"op": "poll"})
        assert (state["turns"], state["running"], stale["op"], stale["whole"]) == (2, False, "stale", True)
        rows = post({"op": "rows", "from": 0, "to": stale["total"]})
        assert any("second question" in text for text in texts(rows)) and any("first" in text for text in texts(rows))
        assert post({"op": "poll"}) == []


def test_a_file_that_is_damaged_for_a_while_or_gone_says_so_once_and_what_was_read_stays(chat, directory):
    chat.ask("one")
    path, sent = directory / "run" / "1.json", []
    view = FileView(path, sent.append)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    for _ in range(3):
        view.refresh()
    [note] = sent
    assert note["error"] and "1.json, line " in note["text"]
    path.unlink()
    view.refresh()
    assert len(sent) == 1 and view.desk.conversation.turns[0].prompt == "one"
    path.write_bytes(whole)
    view.refresh()
    assert [message["op"] for message in sent[1:]] == ["state", "stale"]
    view.close()


def test_turns_that_are_as_they_were_are_kept(chat, directory):
    chat.ask("one")
    view = FileView(directory / "run" / "1.json", lambda message: None)
    before = view.desk.conversation.turns[0]
    chat.ask("two")
    view.refresh()
    assert view.desk.conversation.turns[0] is before and len(view.desk.conversation.turns) == 2


def test_the_browser_in_a_notebook_follows_the_trace_and_the_list(chat, directory):
    chat.ask("first question")
    before = set(threading.enumerate())
    browser, sent, came = TraceBrowser(), [], threading.Condition()

    def send(message, buffers=None):
        with came:
            sent.append(message)
            came.notify_all()

    def wait(found):
        with came:
            assert came.wait_for(lambda: any(found(message) for message in sent), 10), sent

    browser.send = send
    browser._handle_custom_msg({"op": "list"}, [])
    browser._handle_custom_msg({"op": "open", "file": "run/1.json"}, [])
    browser._handle_custom_msg({"op": "hello"}, [])
    chat.ask("second question")
    wait(lambda message: message["op"] == "state" and message["turns"] == 2)
    wait(lambda message: message["op"] == "stale")
    tracing.save("run/2", chat.messages, {}, "some-model")
    wait(lambda message: message["op"] == "list" and len(message["files"]) == 2)
    browser.close()
    assert _ended(before)


def test_nobody_looks_any_more_when_the_owner_is_gone():
    class Owner:
        pass

    before = set(threading.enumerate())
    owner, looked = Owner(), threading.Event()
    every(owner, lambda one: looked.set(), 0.001)
    assert looked.wait(10)
    gone = weakref.ref(owner)
    del owner
    assert _ended(before) and (gc.collect() or True) and gone() is None


def _ended(before: set[threading.Thread]) -> bool:
    """Whether the threads that have begun to look since ``before`` end."""
    deadline = time.monotonic() + 10
    mine = [one for one in set(threading.enumerate()) - before if one.name == "mmsp_nb file view"]
    for thread in mine:
        thread.join(max(deadline - time.monotonic(), 0))
    return not any(one.is_alive() for one in mine)
