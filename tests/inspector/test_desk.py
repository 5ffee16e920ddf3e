"""The inspector's side in Python, without a page: bounded answers, filters, details, actions, live following."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

import inspected
from agent_scripted import Gate, ScriptedClient, call, text, thinking
from hostile_payloads import PAYLOADS

from mmsp_nb import Conversation, Policy
from mmsp_nb.notebook.assets import bundle
from mmsp_nb.notebook.desk import Desk
from mmsp_nb.notebook.rows import describe, matches, rows_of
from mmsp_nb.traces import TracePage, find

KEY = "sk-ant-api03-" + "a1b2c3d4" * 4


class Copied(ScriptedClient):
    def sibling(self):
        return Copied(model=self.model)


class Page:
    """Collects what a desk sends."""

    def __init__(self, chat, **options):
        self.sent = []
        self.arrived = threading.Condition()
        self.desk = Desk(chat, self.take, **options)

    def take(self, message):
        json.dumps(message)
        with self.arrived:
            self.sent.append(message)
            self.arrived.notify_all()

    def ask(self, op, **fields):
        count = len(self.sent)
        self.desk.handle({"op": op, **fields})
        return self.sent[count:]

    def one(self, op, **fields):
        return self.ask(op, **fields)[-1]

    def wait(self, condition):
        with self.arrived:
            assert self.arrived.wait_for(lambda: condition(self.sent), 10)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
def test_the_pages_own_tests_pass(tmp_path):
    (tmp_path / "widget.mjs").write_text(bundle("widget.js"))
    env = {**os.environ, "MMSP_BUNDLE": str(tmp_path / "widget.mjs")}
    command = ["node", "--test", str(Path(__file__).with_name("inspector.test.mjs"))]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout


def test_a_long_conversation_is_sent_in_windows():
    page = Page(inspected.long(10_000))
    state, rows, _ = page.ask("hello")
    assert (state["turns"], rows["total"]) == (2_000, 10_000)
    assert len(rows["rows"]) == 40 and rows["from"] == 9_960
    assert len(json.dumps([state, rows])) < 120_000 and len(state["bars"]) <= 300
    window = page.one("rows", **{"from": 100, "to": 9_000})
    assert len(window["rows"]) == 80 and window["rows"][0]["kind"] == "turn"


def test_one_enormous_item_is_cut_and_comes_whole_when_asked_for():
    answer = "word " * 50_000
    page = Page(inspected.conversation([inspected.turn(inspected.message("user", inspected.text(answer)))]))
    row = page.ask("hello")[1]["rows"][-1]
    assert len(row["text"]) == 16_000 and row["more"] == 234_000
    assert len(page.one("body", row=row["id"])["row"]["text"]) == 250_000


def test_rows_join_calls_with_results_and_name_what_failed():
    client = Copied([thinking("hm"), call("look", "a", at="x"), call("nope", "b")], [text("**done**")])
    chat = Conversation(client=client, tools=[look])
    chat.ask("go")
    rows = Page(chat).ask("hello")[1]["rows"]
    assert [row["kind"] for row in rows] == ["turn", "you", "thinking", "tool", "tool", "answer"]
    assert (rows[3]["name"], rows[3]["args"], rows[3]["result"]["text"]) == ("look", 'at="x"', "seen x")
    assert (rows[3]["status"], rows[4]["status"]) == ("ok", "unknown")
    assert "<strong>done</strong>" in rows[5]["html"]


def test_a_call_that_waits_for_a_word_is_marked_as_not_run_and_is_no_error():
    def delete(path: str) -> str:
        """Delete a file."""
        return "gone"

    chat = Conversation(
        client=ScriptedClient([call("delete", path="x")], [text("done")]),
        tools=[delete],
        policy=Policy(ask=["delete"], unattended="wait"),
    )
    chat.ask("delete x")
    [row] = [row for row in rows_of(chat.turns[0]) if row.kind == "tool"]
    assert describe(row)["status"] == "held"
    assert not matches(row, ["error"], "")
    chat.approve()
    [row] = [describe(row) for row in rows_of(chat.turns[1]) if row.kind == "tool"]
    assert (row["name"], row["head"], row["status"], row["peek"]) == ("delete", 'path="x"', "ok", "gone")
    chat.turns[1].outcomes.clear()  # as in a file that was loaded
    [row] = [describe(row) for row in rows_of(chat.turns[1]) if row.kind == "tool"]
    assert (row["name"], row["peek"]) == ("result", "gone")


def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def test_filter_and_search():
    page = Page(inspected.long(500))
    assert page.one("filter", kinds=["thinking"], text="")["total"] == 200
    found = page.one("filter", kinds=None, text="STATION 42.")
    assert [row["kind"] for row in found["rows"]] == ["turn", "thinking"]
    assert page.one("filter", kinds=["error"], text="")["total"] == 0
    assert page.one("locate", after=-1)["text"] == "there are no errors"


def test_keys_are_hidden_everywhere():
    client = Copied([thinking(KEY), call("look", at=KEY)], [text(f"the key {KEY} is")])
    chat = Conversation(client=client, tools=[look], mask_keys=False)
    chat.ask(f"my key is {KEY}")
    page = Page(chat)
    rows = page.ask("hello")[1]["rows"]
    turn = rows[0]["turn"]
    for row in rows:
        page.ask("raw", row=row["id"])
        page.ask("body", row=row["id"])
        for form in ("text", "markdown", "json", "python"):
            page.ask("copy", row=row["id"], form=form)
    page.ask("request", turn=turn)
    page.ask("events", turn=turn)
    assert not [message for message in page.sent if message.get("error")]
    assert KEY[12:30] not in json.dumps(page.sent)


def test_hostile_text_is_never_html():
    page = Page(inspected.hostile(PAYLOADS))
    rows, start = [], 0
    while start < (window := page.one("rows", **{"from": start, "to": start + 80}))["total"]:
        rows += window["rows"]
        start += len(window["rows"])
    assert len(rows) == len(PAYLOADS) * 12
    for row in rows:
        if "html" in row:
            assert "<script" not in row["html"].lower() and "<img" not in row["html"].lower()
        for source in [row.get("src"), *(image.get("src") for image in row.get("images", ()))]:
            assert source is None or source.startswith(("data:image/png;base64,", "data:audio/"))


def test_request_and_events_of_a_turn():
    chat = Conversation(client=Copied([text("one")], [call("look", at="x")], [text("two", "!")]), tools=[look])
    chat.ask("first")
    chat.ask("second")
    page = Page(chat)
    turn = chat.turns[1].id
    first, second = (page.one("request", turn=turn, number=number) for number in (1, 2))
    document = json.loads(first["text"])
    assert (first["count"], len(document["messages"]), len(json.loads(second["text"])["messages"])) == (2, 3, 5)
    assert document["messages"][0]["content_items"][0]["text"] == "first"
    assert document["config"]["tools"][0]["name"] == "look"
    found = page.one("events", turn=turn)
    kinds = [event["kind"] for event in found["events"]]
    assert kinds[-2:] == ["text.done", "stop"] and found["total"] == len(kinds)


def test_actions_change_the_conversation_and_the_page_is_told():
    chat = Conversation(client=Copied([text("one")], [text("two")]))
    chat.ask("first")
    chat.ask("second")
    page = Page(chat)
    first = chat.turns[0].id
    assert [m["op"] for m in page.ask("act", name="hide", turn=first)] == ["state", "stale"]
    assert chat.turns[0].hidden
    page.ask("act", name="undo")
    assert not chat.turns[0].hidden
    page.ask("act", name="fork", turn=first)
    assert page.sent[-2]["branch"] == "branch 2" and len(chat.turns) == 1
    page.ask("act", name="checkout", branch="main")
    compared = page.one("compare", a="main", b="branch 2")
    assert [pair["status"] for pair in compared["pairs"]] == ["same", "removed"]
    page.ask("act", name="drop", branch="branch 2")
    assert list(chat.branches) == ["main"]
    assert page.one("act", name="format the disk")["error"]


def test_the_page_is_told_whether_there_is_something_to_undo_and_to_redo():
    chat = Conversation(client=Copied([text("one")], [text("two")]))
    page = Page(chat)

    def told():
        state = next(message for message in reversed(page.sent) if message["op"] == "state")
        return state["undo"], state["redo"]

    page.ask("hello")
    assert told() == (False, False)
    during = []
    stop = chat.watch(lambda turn, event: during.append(told()) if event is not None else None)
    chat.ask("first")
    stop()
    assert set(during) == {(False, False)} and told() == (True, False)
    page.ask("act", name="undo")
    assert told() == (False, True)
    page.ask("act", name="redo")
    assert told() == (True, False)
    page.ask("act", name="remove", turn=chat.turns[0].id)
    assert told() == (True, False), "what was deleted comes back, though no turn is left"
    page.ask("act", name="undo")
    page.ask("act", name="pin", turn=chat.turns[0].id)
    assert told() == (True, False), "after something else was done there is nothing to redo"


def test_a_record_can_only_be_looked_at():
    chat = inspected.long(10)
    page = Page(chat, writable=False)
    for message in ({"op": "act", "name": "undo"}, {"op": "ask", "text": "hello"}):
        assert "only" in page.one(**message)["text"]
    assert len(chat.turns) == 2


WRONG = [
    {},
    {"op": "nope"},
    {"op": ["x"]},
    {"op": "rows"},
    {"op": "raw", "row": "x"},
    {"op": "act"},
    {"op": "copy", "row": 1},
    {"op": "events", "turn": None},
]


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_message_is_answered_and_does_no_harm(message):
    page = Page(inspected.long(10))
    page.desk.handle(message)
    assert page.sent[-1]["op"] == "note" and page.sent[-1]["error"]


def test_a_running_answer_is_followed_by_deltas():
    gate = Gate()
    chat = Conversation(client=Copied([*text("The tide ", "is ")[:2], gate, *text("The tide is ", "high")[1:]]))
    page = Page(chat)
    page.ask("ask", text="How is the tide?")
    assert gate.reached.wait(10)
    page.wait(lambda sent: "The tide is " in shown(sent))
    gate.open()
    page.wait(lambda sent: any(m["op"] == "state" and not m["running"] and m["turns"] == 1 for m in sent[3:]))
    assert page.one("rows", **{"from": 0, "to": 9})["rows"][-1]["html"].strip().startswith("<p>The tide is")


def shown(sent):
    """The text of the running row, put together as the page does it."""
    said, length = "", 0
    for message in sent:
        if message["op"] == "stale" and message["tail"] and message["tail"][-1].get("running"):
            said, length = message["tail"][-1]["text"], message["tail"][-1]["length"]
        elif message["op"] == "grow" and message["at"] <= length:
            said += message["text"][length - message["at"] :]
            length = message["at"] + len(message["text"])
    return said


async def test_five_thousand_deltas_are_a_handful_of_messages():
    words = [f"{n} " for n in range(5_000)]
    chat = Conversation(client=Copied([text(*words)]))
    page = Page(chat)
    await chat.ask_async("count")
    size = sum(len(json.dumps(message)) for message in page.sent)
    assert len(page.sent) < 60 and size < 40 * len("".join(words))


async def test_a_key_in_pieces_never_reaches_the_page():
    pieces = ["the key is ", KEY[:9], KEY[9:20], KEY[20:], " and that is it"]
    gates = [Gate() for _ in pieces]
    script = []
    for delta, gate in zip(text(*pieces)[:-1], gates, strict=True):
        script += [delta, gate]
    chat = Conversation(client=Copied([*script, text("".join(pieces))[-1]]))
    page = Page(chat)
    asked = asyncio.ensure_future(chat.ask_async("go"))
    for number, gate in enumerate(gates):
        await asyncio.to_thread(gate.reached.wait, 10)
        count = len(page.sent)
        if number:
            await asyncio.to_thread(page.wait, lambda sent, count=count: len(sent) >= count)
        await asyncio.sleep(0.12)
        gate.open()
    await asked
    assert KEY[13:21] not in json.dumps(page.sent) and "that is it" in json.dumps(page.sent)


def test_the_page_of_traces_is_for_its_owner_only(tmp_path):
    inspected.long(10).save(tmp_path / "talk.jsonl")
    (tmp_path.parent / "secret.json").write_text("{}")
    with TracePage(tmp_path) as page:
        root = page.url.partition("?")[0]

        def get(path, **headers):
            request = urllib.request.Request(root + path, headers=headers)
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers, answer.read()

        def post(message, token=page.token, file="talk.jsonl"):
            body = json.dumps({"file": file, "view": "1", "message": message}).encode()
            request = urllib.request.Request(root + "desk", body, {"x-mmsp-token": token})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read())

        status, headers, body = get(f"?token={page.token}")
        assert status == 200 and b"traces.js" in body and "default-src 'none'" in headers["content-security-policy"]
        assert json.loads(get(f"list?token={page.token}")[2])[0]["id"] == "talk.jsonl"
        assert [message["op"] for message in post({"op": "hello"})] == ["state", "rows", "gauge"]
        assert "no trace" in post({"op": "hello"}, file="../secret.json")[0]["text"]
        for wrong in (lambda: get(""), lambda: get("list?token=x"), lambda: post({"op": "hello"}, token="x"),
                      lambda: get(f"?token={page.token}", Host="evil.example")):  # fmt: skip
            with pytest.raises(urllib.error.HTTPError) as caught:
                wrong()
            assert caught.value.code == 403
    with pytest.raises(FileNotFoundError, match="did you mean"):
        find("tak", tmp_path)
