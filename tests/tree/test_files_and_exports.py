"""Conversations in files: what is saved is what is loaded; damage is named; documents are safe."""

from __future__ import annotations

import ast
import base64
import json
import pickle

import nbformat
import pytest
from agent_scripted import ScriptedClient, call, text, thinking

from mmsp_nb import Conversation
from mmsp_nb.comparing import diff
from mmsp_nb.files import load
from mmsp_nb.mapping.journal import Journal
from mmsp_nb.protocol.errors import ProviderStreamError
from mmsp_nb.protocol.items import ThinkingLevel
from mmsp_nb.restoring import AbsentClient, ConversationFileError

PNG = bytes.fromhex("89504e470d0a1a0a") + b"\x00\xff picture"
HOSTILE = "<script>alert(1)</script> `` ``` </pre><img src=x onerror=alert(2)>"


class Copied(ScriptedClient):
    def sibling(self):
        return Copied(model=self.model)


def get_weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


@pytest.fixture
def chat() -> Conversation:
    """A conversation with everything in it: media, tools, an error, an interruption, branches, hidden turns."""
    image = {"type": "inline_data.done", "data": PNG, "mime_type": "image/png"}
    vector = {"type": "embedding.done", "embedding": [0.25, -1.5]}
    odd = {
        "type": "text.done",
        "text": "line\u2028sep \ud83d half \U0001f600",
        "fidelity": {"raw": b"\x00\x01", "$bytes": 1},
    }
    client = Copied(
        [thinking("let me see", signature="c2ln"), call("get_weather", "c1", city="Paris"), call("nope", "c2")],
        [text(HOSTILE), image, vector, odd],
        [text("ha"), ProviderStreamError("broken", client="x", code="overloaded")],
        [ProviderStreamError("down again", client="x", code="overloaded")],
        [text("fine")],
        [text("other way")],
    )
    chat = Conversation(client=client, tools=[get_weather], system="Be brief.", config={"max_tokens": 9}, name="talk")
    chat.ask(["the weather?", PNG_URL])
    for prompt in ("second", "third"):
        with pytest.raises(ProviderStreamError):
            chat.ask(prompt)
    chat.ask("fourth")
    chat.pin(0)
    chat.hide(1)
    chat.edit(3, "fourth again")
    return chat


PNG_URL = {"type": "image_url.done", "image_url": "data:image/png;base64," + base64.b64encode(PNG).decode()}


def test_a_loaded_conversation_equals_the_saved_one(chat, tmp_path):
    path = chat.save(tmp_path / "talk.jsonl", times=True)
    other = load(path, client=Copied(), tools=[get_weather])
    assert not diff(chat, other)
    assert other.messages == chat.messages
    assert other.branches.keys() == chat.branches.keys() and other.branch == chat.branch
    for name, turns in chat.branches.items():
        assert [turn.id for turn in other.branches[name]] == [turn.id for turn in turns]
        for mine, theirs in zip(turns, other.branches[name], strict=True):
            for field in ("messages", "history", "pending", "hidden", "pinned", "stale", "state", "usage", "started"):
                assert getattr(mine, field) == getattr(theirs, field), field
            assert str(mine.error) == str(theirs.error)
            assert [(o.name, o.text, o.status) for o in mine.outcomes] == [
                (o.name, o.text, o.status) for o in theirs.outcomes
            ]
    assert (other.name, other.system, other.config) == (chat.name, chat.system, chat.config)
    assert other.save(tmp_path / "again.jsonl", times=True).read_bytes() == path.read_bytes()


def test_without_times_the_file_is_the_same_every_time(chat, tmp_path):
    first = chat.save(tmp_path / "a.jsonl").read_text()
    for turn in (turn for turns in chat.branches.values() for turn in turns):
        turn.started += 100
        for number, message in enumerate([*turn.messages, *turn.history]):
            message["created_at"] = number
    assert chat.save(tmp_path / "b.jsonl").read_text() == first
    assert "created_at" not in first and "duration" not in first
    for line in first.splitlines():
        assert list(json.loads(line)) == sorted(json.loads(line))


def test_one_more_question_adds_lines_and_changes_only_the_end(chat, tmp_path):
    before = chat.save(tmp_path / "a.jsonl").read_text().splitlines()
    chat.client.responses.append([text("more")])
    chat.ask("more?")
    after = chat.save(tmp_path / "a.jsonl").read_text().splitlines()
    kept = [line for line in before if '"is": "branch"' not in line and '"is": "end"' not in line]
    assert after[: len(kept)] == kept
    assert len(after) == len(before) + 5


def test_it_goes_on_after_loading(chat, tmp_path):
    client = Copied([text("still here")])
    other = load(chat.save(tmp_path / "talk.jsonl"), client=client)
    assert other.ask("and now?").text == "still here"
    said = [item.get("text") for message in client.requests[0][0] for item in message["content_items"]]
    assert "second" not in said and "fourth again" in said


def test_without_a_key_it_can_be_looked_at_and_says_why_it_cannot_be_asked(chat, tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    chat.client.model, chat.client.client_type = "claude-opus-5-5", "anthropic-official"
    other = load(chat.save(tmp_path / "talk.jsonl"))
    assert isinstance(other.client, AbsentClient)
    assert not diff(chat, other)
    with pytest.raises(Exception, match="ANTHROPIC_API_KEY"):
        other.ask("hello?")
    assert "fine" in other.fork().export(format="markdown") + str(other.branches)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7, 0.99])
def test_a_file_cut_off_says_where(chat, tmp_path, keep):
    path = chat.save(tmp_path / "talk.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)].decode("utf-8", "ignore").encode())
    with pytest.raises(ConversationFileError) as caught:
        load(path)
    if keep:
        assert caught.value.line in (path.read_text().count("\n"), path.read_text().count("\n") + 1)


def test_every_damaged_line_is_named(chat, tmp_path):
    path = chat.save(tmp_path / "talk.jsonl")
    lines = path.read_text().splitlines()
    for number in range(1, len(lines)):
        path.write_text("\n".join([*lines[:number], lines[number][:-3], *lines[number + 1 :]]) + "\n")
        with pytest.raises(ConversationFileError, match=rf"talk\.jsonl, line {number + 1}: ") as caught:
            load(path, client=Copied())
        assert caught.value.line == number + 1


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"is": "turn"}, "'id' is missing"),
        ({"is": "item", "item": {"type": 3}}, "type"),
        ({"is": "surprise"}, "'surprise'"),
        ({"is": "message", "role": "system"}, "role"),
        ({"is": "branch", "name": "x", "turns": ["nobody"]}, "nobody"),
        ([1], "kind"),
    ],
)
def test_a_wrong_record_is_named(chat, tmp_path, record, what):
    path = chat.save(tmp_path / "talk.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], json.dumps(record), *lines[5:]]) + "\n")
    with pytest.raises(ConversationFileError, match=what) as caught:
        load(path, client=Copied())
    assert caught.value.line == 6


@pytest.mark.parametrize(
    "damage",
    [{"waiting": {"7": "asks"}}, {"waiting": {"x": "asks"}}, {"waiting": {"-1": "asks"}}, {"estimated": "yes"}],
)
def test_a_turn_that_cannot_be_is_named_with_its_line(chat, tmp_path, damage):
    path = chat.save(tmp_path / "talk.jsonl")
    lines = path.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if '"is": "turn"' in line)
    lines[at] = json.dumps(json.loads(lines[at]) | damage)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        ConversationFileError, match=rf"line {at + 1}: the turn record is damaged: '{next(iter(damage))}"
    ):
        load(path, client=Copied())


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None])
def test_a_version_that_never_was_is_refused(tmp_path, version):
    path = Conversation("demo").save(tmp_path / "talk.jsonl")
    head, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(head) | {"version": version}), *rest]) + "\n")
    with pytest.raises(ConversationFileError, match=f"line 1: version {version!r} of the format"):
        load(path)


def test_a_newer_format_and_other_files_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"format": "mmsp-conversation", "is": "conversation", "version": 99}\n')
    with pytest.raises(ConversationFileError, match="version 99"):
        load(path)
    for content in ("", "hello", "[1, 2]", '{"a": 1}'):
        path.write_text(content)
        with pytest.raises(ConversationFileError, match=r"x\.jsonl"):
            load(path)


def test_a_failed_save_leaves_the_old_file(chat, tmp_path, monkeypatch):
    path = chat.save(tmp_path / "talk.jsonl")
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    chat.pin(2)
    with pytest.raises(OSError, match="disk full"):
        chat.save(path)
    assert path.read_bytes() == before and [entry.name for entry in tmp_path.iterdir()] == ["talk.jsonl"]


def test_no_key_is_written(chat, tmp_path):
    chat.config["extra_headers"] = {"X-Key": "abcdef-secret-of-mine"}
    chat.turns[-1].config["extra_headers"] = {"X-Key": "abcdef-secret-of-mine"}
    assert "secret-of-mine" not in chat.save(tmp_path / "talk.jsonl").read_text()
    for name in ("markdown", "html", "notebook", "python"):
        assert "secret-of-mine" not in chat.export(format=name)


def test_a_key_in_what_was_said_stays_out_of_the_file(tmp_path, monkeypatch):
    shaped, named = "sk-proj-aB3dE5gH7jK9mN1pQ3s", "hunter2-of-the-environment"
    monkeypatch.setenv("SOME_API_KEY", named)
    signature = {"signature": shaped}  # opaque, and sent again as it is
    said = {"type": "text.done", "text": f"{shaped} {named} token = tokenizer", "fidelity": signature}
    picture = {"type": "image_url.done", "image_url": "data:image/png;base64,AAA+eyJaB3dE5gH7jK9mN1pQ"}
    client = ScriptedClient([said, call("f", key=shaped)], [text(named)])
    chat = Conversation(client=client, system=f"Use {shaped}", mask_keys=False)
    chat.ask([shaped, picture])
    again = load(chat.save(tmp_path / "talk.jsonl"))
    items = [item for message in again.messages for item in message["content_items"]]
    assert again.system == "Use sk-proj-***"
    assert items[:2] == [{"type": "text.done", "text": "sk-proj-***"}, picture]
    assert items[2] == {**said, "text": "sk-proj-*** *** token = tokenizer"}
    assert items[3]["arguments"] == {"key": "sk-proj-***"} and items[-1]["text"] == "***"
    assert chat.turns[0].prompt == shaped, "the conversation itself is not changed"


def test_trace_files_are_loaded(tmp_path, monkeypatch):
    from mmsp_nb import tracing

    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    client = Copied([thinking("hm"), call("get_weather", city="Rom")], [text("rain"), {**IMAGE}], [text("bye")])
    chat = Conversation(client=client, tools=[get_weather])
    chat.ask("weather?")
    chat.ask("thanks")
    path, _ = tracing.save("run/1", chat.messages, {"system_prompt": "Be brief.", "trace_id": "run/1"}, "some-model")
    other = load(path, client=Copied())
    assert [turn.prompt for turn in other.turns] == ["weather?", "thanks"]
    assert other.messages == chat.messages
    assert other.turns[0].outcomes[0].text == "rain in Rom"
    assert other.turns[0].model == "some-model" and other.system == "Be brief."
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ConversationFileError, match=r"line \d+"):
        load(path)


IMAGE = {"type": "inline_data.done", "data": PNG, "mime_type": "image/png"}


def test_diff_goes_turn_by_turn(chat):
    other = chat.fork()
    assert not diff(chat, other) and str(diff(chat, other)) == "no difference"
    other.turns[0].messages[-1]["content_items"][0]["text"] = "Sunny."
    other.client.responses.append([text("new")])
    other.ask("one more")
    found = diff(chat, other)
    assert [pair.status for pair in found] == ["changed", *["same"] * (len(chat.turns) - 1), "added"]
    assert "+ model: Sunny." in found[0].lines()
    assert "turn 1: changed" in str(found) and found
    branches = diff(chat.branches["main"], chat.branches["branch 2"])
    assert [pair.status for pair in branches][-1] == "changed"


def test_a_difference_with_half_an_emoji_can_be_printed():
    one, other = Conversation("demo"), Conversation("demo")
    one.ask("half \ud83d")
    other.ask("whole")
    assert "half ?" in str(diff(one, other)).encode().decode()


@pytest.mark.parametrize("format", ["markdown", "html", "notebook", "python"])
def test_a_system_prompt_that_is_no_text_is_exported_all_the_same(tmp_path, format):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"history": [], "config": {"model": "demo", "system_prompt": 5}}))
    assert load(path).export(format=format)


def test_diff_says_what_it_cannot_compare():
    with pytest.raises(TypeError, match="not int"):
        diff(1, 2)


def test_markdown_shows_everything_and_fences_what_is_hostile(chat):
    document = chat.export(format="markdown")
    for expected in ("the weather?", "let me see", 'get_weather(city="Paris")', "rain in Paris", "[embedding of 2"):
        assert expected.replace("[", "\\[") in document or expected in document
    assert "![picture](data:image/png;base64," in document


def test_html_holds_no_markup_of_the_model(chat):
    import html.parser

    tags: list[tuple[str, dict]] = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append((tag, dict(attrs)))

    document = chat.export(format="html")
    Parser().feed(document)
    assert {tag for tag, _ in tags}.isdisjoint({"script", "iframe", "object", "svg", "form"})
    assert all(not name.startswith("on") for _, attrs in tags for name in attrs)
    assert all(attrs["src"].startswith("data:image/") for tag, attrs in tags if tag == "img")
    assert "rain in Paris" in document


def test_the_notebook_is_valid_and_repeats_the_questions(chat, tmp_path):
    chat.turns[-1].messages[0]["content_items"][0]["text"] = "literally {{braces}}"
    chat.export(tmp_path / "talk.ipynb")
    notebook = nbformat.read(tmp_path / "talk.ipynb", as_version=4)
    nbformat.validate(notebook)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert sources[0] == "%load_ext mmsp_nb" and sources[1].startswith("%%mmsp")
    assert "{{'{{'}}braces}}" in sources[-1]


def test_the_python_code_makes_the_same_questions(chat):
    code = chat.export(format="python")
    ast.parse(code)
    replies = [[text(str(n))] for n in range(9)]
    made: list[Conversation] = []

    def conversation(model, **options):
        made.append(Conversation(client=Copied(*replies), **{k: v for k, v in options.items() if k != "client_type"}))
        return made[0]

    names = {"Conversation": conversation, "get_weather": get_weather}
    exec(code.replace("from mmsp_nb import Conversation", ""), names)
    assert [turn.prompt for turn in made[0].turns] == [turn.prompt for turn in chat.turns]
    assert made[0].system == "Be brief." and made[0].config["max_tokens"] == 9
    assert [turn.hidden for turn in made[0].turns] == [turn.hidden for turn in chat.turns]


def test_the_python_code_keeps_what_one_question_was_asked_with():
    chat = Conversation("demo", config={"max_tokens": 9}, system="Be brief.")
    chat.ask("first", config={"temperature": 0.5})
    chat.ask("second", config={"max_tokens": 7, "thinking_level": ThinkingLevel.LOW})
    chat.ask(["third", "of two"], config={"temperature": None, "max_tokens": None, "system_prompt": "Shout."})
    chat.ask("fourth", config={"stop": ["x"]})
    names: dict = {}
    exec(chat.export(format="python"), names)
    assert [turn.config for turn in names["chat"].turns] == [turn.config for turn in chat.turns]


def test_formats_are_checked(chat, tmp_path):
    with pytest.raises(ValueError, match="did you mean 'markdown'"):
        chat.export(format="markdwn")
    with pytest.raises(ValueError, match=r"\.ipynb"):
        chat.export(tmp_path / "talk.doc")


def test_pickling_a_conversation_says_what_keeps_it():
    with pytest.raises(TypeError, match=r"chat\.save\(path\) keeps it, mmsp_nb\.load\(path\) reads it"):
        pickle.dumps(Conversation("demo"))


def test_tools_that_are_not_here_stay_in_the_file(tmp_path):
    def of_another_kernel(x: int) -> int:
        """Add one."""
        return x + 1

    first = Conversation("demo", tools=[of_another_kernel]).save(tmp_path / "a.jsonl")
    again = load(first)
    assert again.tools.names() == []
    assert again.save(tmp_path / "b.jsonl").read_text() == first.read_text()
    again.tools.add(of_another_kernel)
    assert again.save(tmp_path / "b.jsonl").read_text() == first.read_text()


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = Conversation(client=ScriptedClient([text("yes")]), name="n").save(tmp_path / "a.jsonl")
    path.write_text("\ufeff" + path.read_text(), encoding="utf-8")
    assert load(path).name == "n"


def test_a_file_that_is_not_there_is_answered_with_one_like_it(tmp_path):
    Conversation(client=ScriptedClient()).save(tmp_path / "talk.jsonl")
    with pytest.raises(FileNotFoundError, match=r"there is no such file; did you mean 'talk.jsonl'\?.*tlak.jsonl"):
        load(tmp_path / "tlak.jsonl")
    with pytest.raises(FileNotFoundError, match="there is no such file: "):
        load(tmp_path / "no folder" / "talk.jsonl")


def test_a_checkpoint_is_told_from_a_conversation(tmp_path):
    Journal(tmp_path / "rows.jsonl").close()
    with pytest.raises(ConversationFileError, match="this is a checkpoint of map"):
        load(tmp_path / "rows.jsonl")


def test_a_trace_is_called_by_its_id_with_its_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path / "kept"))
    Conversation("demo", config={"trace_id": "tides/42"}).ask("hello")
    assert load(tmp_path / "kept" / "tides" / "42.json").name == "tides/42"
    (tmp_path / "kept" / "tides" / "42.json").rename(tmp_path / "mine.json")
    assert load(tmp_path / "mine.json").name == "mine"
