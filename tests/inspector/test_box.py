"""The box of the inspector: what is attached and evaluated, what comes back, and what leaves the page as a file."""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

import inspected
from agent_scripted import Gate, ScriptedClient, call, text
from test_desk import Copied, Page, look

from mmsp_nb import Conversation, Policy
from mmsp_nb.notebook import documents
from mmsp_nb.testing import FakeProvider, Reply, parts, wire

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def settled(page):
    """Wait until the answer that was asked for is there."""
    page.desk._asker._job.result(10)


def items(chat, turn=-1):
    return chat.turns[turn].messages[0]["content_items"]


def box(chat, namespace=None, **options):
    return Page(chat, namespace=lambda: namespace or {}, **options)


def ask(page, said, **more):
    answered = page.ask("ask", id=7, text=said, **more)
    if any(message["op"] == "asked" for message in answered):
        settled(page)
    return answered


def test_expressions_are_values_of_the_users_variables():
    chat = Conversation(client=Copied([text("ok")]))
    ask(box(chat, {"n": 41, "word": "{{n}}"}), r"{{n + 1}} and {{word}}, not \{{n}}")
    assert items(chat)[0]["text"] == "42 and {{n}}, not {{n}}"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("a\n{{number}}", "line 2: {{number}}: NameError"),
        ("{{1 / 0}}", "ZeroDivisionError: division by zero"),
        ("{{", "never closed"),
        ("", "nothing to ask"),
    ],
)
def test_an_expression_that_fails_is_one_line_and_nothing_is_asked(said, line):
    chat = Conversation(client=Copied([text("ok")]))
    page = box(chat, {"numbers": [1]})
    (note,) = ask(page, said)
    assert note["op"] == "note" and note["for"] == 7 and line in note["text"] and "\n" not in note["text"]
    assert not chat.turns
    ask(page, "{{numbers}}")
    assert items(chat)[0]["text"] == "[1]"


def test_pictures_and_texts_go_with_the_question():
    chat = Conversation(client=Copied([text("ok")]))
    files = [
        {"name": "dot.png", "kind": "image", "data": URL},
        {"name": "a.csv", "kind": "text", "text": "x,y\n1,{{2}}\n"},
    ]
    ask(box(chat), "What is it?", files=files)
    picture, said = items(chat)
    assert picture["type"] == "image_url.done" and picture["image_url"].startswith("data:image/png;base64,")
    assert said["text"] == "What is it?\n\na.csv:\n```\nx,y\n1,{{2}}\n```"  # what a file holds is never evaluated


def test_a_picture_alone_can_be_asked_about():
    chat = Conversation(client=Copied([text("ok")]))
    ask(box(chat), "", files=[{"name": "dot.png", "kind": "image", "data": URL}])
    assert [item["type"] for item in items(chat)] == ["image_url.done"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ({"name": "a.svg", "kind": "image", "data": "data:image/svg+xml;base64,PHN2Zz4="}, "a.svg: "),
        ({"name": "a.png", "kind": "image", "data": "https://example.invalid/a.png"}, "a.png is no picture"),
        ({"name": "a.png", "kind": "image", "data": "data:image/png;base64,@@@"}, "a.png came damaged"),
        ({"name": "<b>\n" + "n" * 300, "kind": "image", "data": ""}, "is no picture"),
    ],
)
def test_what_is_no_picture_is_refused_whatever_the_page_says(file, line):
    chat = Conversation(client=Copied([text("ok")]))
    (note,) = ask(box(chat), "look", files=[file])
    assert line in note["text"] and note["for"] == 7 and "\n" not in note["text"] and not chat.turns


def test_an_edited_question_is_not_evaluated_a_second_time_and_keeps_its_pictures():
    chat = Conversation(client=Copied([text("one")], [text("two")], [text("three")]))
    page = box(chat, {"table": "from a stranger: {{__import__('os').abort()}}"})
    ask(page, "{{table}}", files=[{"name": "dot.png", "kind": "image", "data": URL}])
    turn = chat.turns[0].id
    prompt = page.one("prompt", turn=turn)
    assert prompt["text"] == "from a stranger: \\{{__import__('os').abort()}}"
    assert [one["kept"] for one in prompt["kept"]] == [0] and prompt["kept"][0]["src"] == URL
    ask(page, prompt["text"] + " again", turn=turn, kept=[0])
    assert [item["type"] for item in items(chat)] == ["image_url.done", "text.done"]
    assert items(chat)[1]["text"] == "from a stranger: {{__import__('os').abort()}} again"
    ask(page, "without", turn=chat.turns[0].id, kept=[])
    assert len(items(chat)) == 1 and len(chat.branches) == 3


def test_a_question_that_is_refused_in_form_comes_back():
    class Refusing(Copied):
        async def streaming_response_stateful(self, message, config=None, signal=None):
            raise ValueError("no such thing")
            yield

    chat = Conversation(client=Refusing())
    page = box(chat)
    page.ask("ask", id=3, text="hello")
    page.wait(lambda sent: any(m["op"] == "note" and m["error"] for m in sent))
    order = [m["op"] for m in page.sent]
    assert order.index("asked") < order.index("note")
    if not chat.turns:
        page.wait(lambda sent: any(m["op"] == "returned" and m["id"] == 3 for m in sent))


def test_variables_are_offered_by_their_beginning():
    page = box(inspected.long(10), {"data": 1, "date": 2, "_hidden": 3, "os": os, "In": [], "x": 4})
    assert page.one("names", word="da")["names"] == ["date", "data"]
    assert page.one("names", word="")["names"] == ["x", "date", "data"]
    assert box(inspected.long(10), {"data": 1}, writable=False).one("names", word="d")["error"]


def test_compact_puts_a_summary_in_place_and_undo_brings_all_back():
    chat = Conversation(client=Copied(*[[text(f"answer {n}")] for n in range(4)]))
    for n in range(4):
        chat.ask(f"question {n}")
    chat._sibling = lambda: ScriptedClient([text("All in short.")])
    page = box(chat)
    page.ask("act", name="compact")
    page.wait(lambda sent: any("compacted" in str(m.get("text")) for m in sent))
    assert [turn.hidden for turn in chat.turns] == [True, True, False, False, False]
    assert "All in short." in chat.turns[2].prompt
    page.ask("act", name="undo")
    assert [turn.hidden for turn in chat.turns] == [False] * 4
    page.ask("act", name="compact")
    page.wait(lambda sent: sum("compacted" in str(m.get("text")) for m in sent) == 2 or sent[-1].get("error"))


def test_while_something_runs_nothing_else_begins():
    gate = Gate()
    chat = Conversation(client=Copied([*text("one ", "two")[:1], gate, *text("one ", "two")[1:]]))
    page = box(chat)
    page.ask("ask", id=1, text="go")
    assert gate.reached.wait(10)
    for message in ({"op": "ask", "id": 2, "text": "more"}, {"op": "act", "name": "compact"}):
        assert "is being answered" in page.one(**message)["text"]
    gate.open()
    settled(page)
    assert len(chat.turns) == 1


@pytest.mark.parametrize("approve", [True, False])
def test_calls_that_wait_are_decided_in_the_box(approve):
    chat = Conversation(
        client=Copied([call("look", "a", at="x")], [text("done")]), tools=[look], policy=Policy(ask=["look"])
    )
    page = box(chat)
    ask(page, "go")
    state = [m for m in page.sent if m["op"] == "state"][-1]
    assert len(state["waiting"]) == 1 and "look" in state["waiting"][0]
    page.ask("decide", approve=approve)
    page.wait(lambda sent: len(chat.turns) > 1 and chat.turns[-1].state == "done")
    settled(page)
    assert ("seen x" in str(chat.messages)) is approve
    assert [m for m in page.sent if m["op"] == "state"][-1]["waiting"] == []


@pytest.mark.parametrize("form", ["markdown", "html", "notebook", "python"])
def test_documents_go_to_the_page_or_to_a_new_file(tmp_path, form):
    page = Page(inspected.conversation(list(inspected.long(10).turns), name="Tides & <winds>"), folder=lambda: tmp_path)
    sent = page.one("export", format=form)
    assert sent["op"] == "document" and sent["name"].startswith("Tides-winds.") and "Question 1" in sent["text"]
    names = [page.one("export", format=form, file=True)["path"] for _ in range(2)]
    assert names[1] == names[0].replace(".", "-2.", 1)
    assert (tmp_path / names[0]).read_text() == sent["text"]


def test_a_talk_becomes_a_notebook_and_a_file_and_nothing_is_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / "long.ipynb").write_text("mine")
    page = Page(inspected.long(10), folder=lambda: tmp_path)
    made = page.one("cells")
    assert (made["op"], made["path"], made["full"]) == ("written", "long-2.ipynb", "~/long-2.ipynb")
    cells = json.loads((tmp_path / "long-2.ipynb").read_text())["cells"]
    assert sum(cell["source"].startswith("%%mmsp") for cell in cells) == 2
    assert (tmp_path / "long.ipynb").read_text() == "mine"
    saved = page.one("save")
    assert made["beside"] is saved["beside"] is False
    session = {"JPY_SESSION_NAME": str(tmp_path / "one.ipynb")}
    assert documents.shown_path(tmp_path / "a.md", session)["beside"]
    assert not documents.shown_path(tmp_path / "far" / "a.md", session)["beside"]
    assert Conversation.load(tmp_path / saved["path"]).messages == inspected.long(10).messages


def test_a_page_without_a_folder_gets_documents_only(monkeypatch):
    page = Page(inspected.long(10), writable=False)
    assert page.one("cells")["error"] and page.one("save")["error"]
    assert page.one("export", format="markdown")["op"] == "document"
    assert page.one("export", format="pdf")["error"]
    monkeypatch.setattr(documents, "SIZE", 10)
    assert page.one("export", format="markdown")["error"]


@pytest.mark.parametrize("name", ["../../x", "", "a/b\\c", "..", "nul\0", "é" * 200, None])
def test_the_name_of_a_conversation_cannot_lead_elsewhere(tmp_path, name):
    chat = inspected.long(10)
    chat.name = name
    path = documents.write(chat, tmp_path, "markdown")
    assert path.parent == tmp_path and path.is_file() and len(path.name) < 80


# what was sent, and when


def test_the_requests_that_are_shown_are_the_ones_that_were_sent():
    with FakeProvider() as provider:
        scripts = [
            [parts.call("look", {"at": "x"}, id="c1")],
            [parts.text("one")],
        ]
        provider.add(*(Reply.stream(wire.chat.frames(script)) for script in scripts))
        options = {"base_url": provider.url("/v1"), "api_key": "test-key-of-the-fake"}
        chat = Conversation("fake", client_type="openai-chat", tools=[look], system="Be brief.", **options)
        chat.ask("first")
        provider.add(Reply.stream(wire.messages.frames([parts.text("two")])))
        chat.switch("claude-fake", client_type="ant-messages", base_url=provider.url(), api_key=options["api_key"])
        chat.ask("second")
        page = Page(chat)
        shown = []
        for turn, count in ((chat.turns[0], 2), (chat.turns[1], 1)):
            for number in range(1, count + 1):
                message = page.one("request", turn=turn.id, number=number)
                assert (message["number"], message["count"]) == (number, count)
                shown.append(json.loads(message["text"]))
        assert [one["body"] for one in shown] == [request.body for request in provider.requests]
        assert all(one["answered"].startswith("from ") for one in shown)
        assert options["api_key"] not in json.dumps(page.sent)


def test_events_tell_which_request_they_answer():
    chat = Conversation(client=Copied([call("look", at="x")], [text("two", "!")]), tools=[look])
    chat.ask("go")
    found = Page(chat).one("events", turn=chat.turns[0].id)["events"]
    assert [event["request"] for event in found] == sorted(event["request"] for event in found)
    assert {event["request"] for event in found} == {1, 2}
    assert [event["at"] for event in found] == sorted(event["at"] for event in found)


def test_a_log_keeps_so_many_events_and_counts_the_rest(monkeypatch):
    from mmsp_nb import eventlog

    monkeypatch.setattr(eventlog, "LIMIT", 10)
    chat = Conversation(client=Copied([text(*"abcdefghijklmnop")]))
    chat.ask("go")
    log = chat.turns[0].log
    assert len(log) == 10 and log.left_out == 8 and len(list(log)) == 10
    texts = [event["content_items"][0]["text"] for _, event in log]
    assert texts == list("abcdefghij")


def test_a_question_with_everything_survives_a_file(tmp_path):
    chat = Conversation(client=Copied([text("ok")]))
    files = [{"name": "dot.png", "kind": "image", "data": URL}]
    ask(box(chat, {"n": 1}), "{{n}}?", files=files)
    assert Conversation.load(chat.save(tmp_path / "x.jsonl", times=True)).messages == chat.messages


def test_large_pictures_are_made_smaller_here_too():
    pillow = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    pillow.effect_noise((3000, 2000), 90).save(buffer, "PNG")
    data = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    chat = Conversation(client=Copied([text("ok")]))
    ask(box(chat), "see", files=[{"name": "big.png", "kind": "image", "data": data}])
    assert len(items(chat)[0]["image_url"]) < 2_100_000


# the same from a cell


def test_a_talk_becomes_cells_from_a_magic_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chat = inspected.long(10)
    made = documents.cells(chat)
    assert repr(made) == "wrote long.ipynb" and made._repr_html_() == 'wrote <a href="long.ipynb">long.ipynb</a>'
    assert repr(documents.cells(chat)) == "wrote long-2.ipynb"
    assert 'href="a%20%22b.ipynb"' in documents.cells(chat, 'a "b.ipynb')._repr_html_()
    for file, line in (("long.ipynb", "there already"), ("long.md", r"name it long\.ipynb")):
        with pytest.raises(ValueError, match=line):
            documents.cells(chat, file)
    assert "href" not in documents.cells(chat, str(tmp_path / "far.ipynb"))._repr_html_()
