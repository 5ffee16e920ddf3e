"""Scripted answers: every dialect writes what its vendor would, with the oddities asked for."""

from __future__ import annotations

import json

import pytest

from mmsp_nb.testing import Frame, Reply, Style, encode, faults, streams
from mmsp_nb.testing.connection import RecordedRequest
from mmsp_nb.testing.parts import Step, audio, call, image, steps, text, thinking
from mmsp_nb.testing.wire import chat, embeddings, generate_content, interactions, messages, mmsp, responses

BOTH = [call("f", "{", "}", id="a"), call("g", "[", "1", "]", id="b")]


def payloads(frames) -> list:
    return [frame.data for frame in frames if isinstance(frame, Frame)]


def test_frames_are_written_as_server_sent_events():
    frames = [Frame({"a": "ü"}, "x"), Frame("[DONE]")]
    assert b"".join(encode(frames)) == 'event: x\ndata: {"a":"ü"}\n\ndata: [DONE]\n\n'.encode()


@pytest.mark.parametrize(
    ("style", "written"),
    [
        (Style(newline="\r\n"), b"event: x\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n"),
        (Style(space=False), b"event:x\ndata:1\n\ndata:2\n\n"),
        (Style(names=False), b"data: 1\n\ndata: 2\n\n"),
        (Style(bom=True), b"\xef\xbb\xbfevent: x\ndata: 1\n\ndata: 2\n\n"),
        (Style(comments=2), b": keep-alive\n\nevent: x\ndata: 1\n\ndata: 2\n\n"),
        (Style(final_blank_line=False), b"event: x\ndata: 1\n\ndata: 2"),
        (Style(ids=True), b"id: 0\nretry: 3000\nevent: x\ndata: 1\n\nid: 1\nretry: 3000\ndata: 2\n\n"),
    ],
)
def test_every_style_of_frames(style, written):
    assert b"".join(encode([Frame(1, "x"), Frame(2)], style)) == written


def test_text_and_json_of_several_lines_become_several_data_lines():
    assert encode([Frame("a\nb")]) == [b"data: a\ndata: b\n\n"]
    assert encode([Frame({"a": 1})], Style(multiline=True)) == [b'data: {\ndata:  "a": 1\ndata: }\n\n']
    assert encode([b"raw"]) == [b"raw"]
    assert encode([Frame("ü")], Style(ascii=True)) == ["data: ü\n\n".encode()]
    assert encode([Frame({"a": "ü"})], Style(ascii=True)) == [b'data: {"a":"\\u00fc"}\n\n']


def test_parts_are_written_one_after_the_other():
    kinds = [(step.kind, step.index, step.piece) for step in steps([text("a", "b"), BOTH[0], image(b"x")])]
    assert kinds == [
        *[("start", 0, ""), ("piece", 0, "a"), ("piece", 0, "b"), ("end", 0, "")],
        *[("start", 1, ""), ("piece", 1, "{"), ("piece", 1, "}"), ("end", 1, "")],
        *[("start", 2, ""), ("end", 2, "")],
    ]


def test_neighbouring_calls_can_be_interleaved():
    written = list(steps([text("a"), *BOTH, text("b")], interleave=True))
    assert written[0] == Step("start", 0, text("a"))
    pieces = [(step.index, step.piece) for step in written if step.kind == "piece"]
    assert pieces == [(0, "a"), (1, "{"), (2, "["), (1, "}"), (2, "1"), (2, "]"), (3, "b")]
    assert [step.kind for step in written[3:5]] == ["start", "start"]


@pytest.mark.parametrize("dialect", streams.DIALECTS)
@pytest.mark.parametrize("name", streams.NAMES)
def test_canonical_answers_exist_where_the_dialect_can_say_them(dialect, name):
    media = name in ("images", "audio")
    if media and dialect not in ("interactions", "generate_content", "mmsp"):
        with pytest.raises(ValueError, match=f"carry no {name}"):
            streams.frames(name, dialect)
        return
    frames = streams.frames(name, dialect)
    assert len(frames) >= 2
    assert all(isinstance(frame.data, dict) or frame.data == "[DONE]" for frame in frames)
    assert streams.reply(name, dialect).content == b"".join(encode(frames))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no answer 'txet'; there are text, thinking"):
        streams.frames("txet", "chat")
    with pytest.raises(ValueError, match="no dialect 'chats'"):
        streams.frames("text", "chats")
    with pytest.raises(TypeError, match="carry no media"):
        chat.frames([image(b"x")])
    with pytest.raises(TypeError, match="carry no media"):
        messages.frames([image(b"x")])
    with pytest.raises(TypeError, match="carry no media"):
        responses.frames([audio(b"x")])


def deltas(frames, key: str) -> list:
    choices = [payload["choices"] for payload in payloads(frames) if isinstance(payload, dict)]
    return [c[0]["delta"][key] for c in choices if c and key in c[0]["delta"]]


def test_chat_calls_come_in_pieces_whole_or_with_the_name_everywhere():
    def calls(**options):
        found = deltas(chat.frames(BOTH, **options), "tool_calls")
        return [
            (c["index"], c.get("id"), c["function"].get("name"), c["function"]["arguments"]) for cs in found for c in cs
        ]

    assert calls() == [
        *[(0, "a", "f", ""), (0, None, None, "{"), (0, None, None, "}")],
        *[(1, "b", "g", ""), (1, None, None, "["), (1, None, None, "1"), (1, None, None, "]")],
    ]
    assert calls(calls="whole") == [(0, "a", "f", "{}"), (1, "b", "g", "[1]")]
    assert calls(calls="whole", shared_index=True) == [(0, "a", "f", "{}"), (0, "b", "g", "[1]")]
    assert calls(calls="name-in-every-chunk")[:2] == [(0, "a", "f", "{"), (0, "a", "f", "}")]
    assert [index for index, *_ in calls(interleave=True)] == [0, 1, 0, 1, 0, 1, 1]
    assert len(deltas(chat.frames(BOTH, calls="whole", one_chunk=True), "tool_calls")) == 1


def test_chat_usage_comes_last_with_the_finish_or_everywhere():
    def places(**options):
        found = payloads(chat.frames([text("a")], **options))
        return [bool(payload.get("usage")) for payload in found if isinstance(payload, dict)]

    assert places() == [False, False, False, True]
    assert places(usage_on="finish") == [False, False, True]
    assert places(usage_on="every") == [True, True, True]
    assert places(usage=None) == [False, False, False]


def test_chat_finish_reasons():
    def finish(*parts, **options):
        choices = [p["choices"] for p in payloads(chat.frames(parts, **options)) if isinstance(p, dict)]
        return [c[0]["finish_reason"] for c in choices if c and c[0]["finish_reason"]]

    assert finish(text("a")) == ["stop"]
    assert finish(BOTH[0]) == ["tool_calls"]
    assert finish(text("a"), finish="filter") == ["content_filter"]
    assert finish(text("a"), finish="odd") == ["odd"]
    assert finish(text("a"), finish=None) == []


def test_chat_reasoning_fields():
    thought = [thinking("a", encrypted="e")]
    assert deltas(chat.frames(thought), "reasoning_content") == ["a"]
    assert deltas(chat.frames(thought, reasoning="reasoning"), "reasoning") == ["a"]
    both = chat.frames(thought, reasoning="both")
    assert deltas(both, "reasoning") == deltas(both, "reasoning_content") == ["a"]
    details = deltas(chat.frames(thought, reasoning="details"), "reasoning_details")
    assert [block["type"] for blocks in details for block in blocks] == ["reasoning.text", "reasoning.encrypted"]


def test_messages_blocks_have_indexes_and_ends():
    found = payloads(messages.frames([thinking("a", signature="s"), *BOTH], interleave=True))
    starts = [p["index"] for p in found if p["type"] == "content_block_start"]
    stops = [p["index"] for p in found if p["type"] == "content_block_stop"]
    assert starts == stops == [0, 1, 2]
    kinds = [(p["index"], p["delta"]["type"]) for p in found if p["type"] == "content_block_delta"]
    assert kinds[:2] == [(0, "thinking_delta"), (0, "signature_delta")]
    assert [index for index, _ in kinds[2:]] == [1, 2, 1, 2, 2]
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


def test_messages_input_can_come_in_the_start_block():
    found = payloads(messages.frames([call("f", {"a": 1})], input_in_start=True))
    assert [p["content_block"]["input"] for p in found if p["type"] == "content_block_start"] == [{"a": 1}]
    assert not [p for p in found if p["type"] == "content_block_delta"]


def test_responses_can_be_terse_and_without_ids():
    found = payloads(responses.frames([text("a"), BOTH[0]], terse=True, item_ids=False))
    assert not [key for p in found for key in p if key.endswith("_index") or key in ("sequence_number", "item_id")]
    full = payloads(responses.frames([text("a")]))
    assert [p["sequence_number"] for p in full] == list(range(len(full)))


def test_responses_calls_can_come_at_the_end():
    found = payloads(responses.frames([call("f", {"a": 1})], calls_at_end=True))
    assert [p["type"] for p in found if "output_item" in p["type"]] == ["response.output_item.done"]
    assert found[-2]["item"]["arguments"] == '{"a": 1}'


def test_interactions_and_generate_content_carry_media_in_base64():
    parts = [image(b"png", thought=True), audio(b"a")]
    steps_of = [p["delta"] for p in payloads(interactions.frames(parts)) if isinstance(p, dict) and "delta" in p]
    assert steps_of[0] == {
        "type": "thought_summary",
        "content": {"type": "image", "data": "cG5n", "mime_type": "image/png"},
    }
    assert steps_of[1]["sample_rate"] == 24000
    chunk = payloads(generate_content.frames(parts))[0]
    assert chunk["candidates"][0]["content"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "cG5n"}, "thought": True}
    ]


def test_mmsp_frames_are_runs_of_deltas_and_a_done():
    kinds = [p["content_items"][0]["type"] for p in payloads(mmsp.frames(streams.parts("tools")))[:-2]]
    assert kinds == [
        *["thinking.delta"] * 3,
        "thinking.done",
        *["tool_call.delta"] * 4,
        "tool_call.done",
        *["tool_call.delta"] * 3,
        "tool_call.done",
    ]


def test_embeddings_are_floats_or_packed():
    packed, floats = (embeddings.openai([[0.5]], encoding=e)["data"][0]["embedding"] for e in ("base64", "float"))
    assert (packed, floats) == ("AAAAPw==", [0.5])
    assert [d["index"] for d in embeddings.openai([[1.0], [2.0]], shuffled=True)["data"]] == [1, 0]
    assert embeddings.gemini_single([1.0])["embedding"]["values"] == [1.0]


@pytest.mark.parametrize("dialect", streams.DIALECTS)
@pytest.mark.parametrize("name", faults.FAULTS)
def test_every_fault_is_a_reply_in_every_dialect(name, dialect):
    reply = faults.reply(name, dialect)
    assert isinstance(reply, Reply)
    fault = faults.FAULTS[name]
    assert fault.summary
    if fault.number is not None:
        assert isinstance(faults.reply(f"fake:{name}-401", dialect), Reply)


def test_faults_with_numbers():
    assert faults.reply("status-418").status == 418
    assert faults.reply("cut-after-7").content == streams.reply("tools", "chat").content[:7]
    assert faults.reply("fake:rate-limited-3").headers["retry-after"] == "3"


@pytest.mark.parametrize("name", ["cut-aftr", "cut-aftr-20", "crlf-3", "fake:"])
def test_unknown_faults_are_refused(name):
    with pytest.raises(ValueError, match="no fault"):
        faults.reply(name)
    with pytest.raises(ValueError, match="did you mean 'cut-after'"):
        faults.reply("cut-aftr-20")


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/chat/completions", "chat"),
        ("/v1/messages", "messages"),
        ("/v1/responses", "responses"),
        ("/v1/interactions", "interactions"),
        ("/v1/models/fake:crlf:streamGenerateContent", "generate_content"),
        ("/v1/stream", "mmsp"),
    ],
)
def test_the_model_names_the_fault_and_the_path_the_dialect(path, dialect):
    body = {} if dialect == "generate_content" else {"model": "fake:crlf"}
    assert faults.answer(RecordedRequest("POST", path, body=body)).content == faults.reply("crlf", dialect).content


def test_the_fault_script_answers_other_models_with_text_and_unknown_faults_with_a_refusal():
    plain = faults.answer(RecordedRequest("POST", "/v1/responses", body={"model": "gpt"}))
    assert plain.content == streams.reply("text", "responses").content
    refused = faults.answer(RecordedRequest("POST", "/v1/responses", body={"model": "fake:crlff"}))
    assert refused.status == 404
    assert "did you mean 'crlf'" in json.loads(refused.content)["error"]["message"]
    with pytest.raises(ValueError, match="no streaming dialect"):
        faults.dialect_of("/v1/models")


def test_messages_can_redact_skip_and_list():
    redacted = payloads(messages.frames([thinking("x", signature="d", redacted=True)], ping=False))
    assert redacted[1]["content_block"] == {"type": "redacted_thinking", "data": "d"}
    with_server_tool = payloads(messages.frames([text("a")], unknown_blocks=True))
    starts = [p["index"] for p in with_server_tool if p["type"] == "content_block_start"]
    assert starts == [0, 1, 2]
    page = messages.models(["a", "b"], has_more=True)
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("a", "b", True)
    assert messages.models([])["last_id"] is None


def test_responses_can_fail_refuse_and_stay_incomplete():
    assert payloads(responses.frames([text("a")], failed="server_error"))[-1]["type"] == "response.failed"
    assert payloads(responses.frames([text("a")], status="incomplete"))[-1]["type"] == "response.incomplete"
    refused = payloads(responses.frames([], refusal_text="No."))
    assert [p["delta"] for p in refused if p["type"] == "response.refusal.delta"] == ["No."]
    summary = payloads(responses.frames([thinking("a", channel="summary", encrypted="e", signature="s")]))
    item = summary[-2]["item"]
    assert (item["summary"], item["encrypted_content"], item["signature"]) == (
        [{"type": "summary_text", "text": "a"}],
        "e",
        "s",
    )


def test_interactions_can_skip_steps_and_stop_short():
    found = payloads(interactions.frames([text("a")], unknown_steps=True, completed=False, done=False))
    assert [p["step"]["type"] for p in found if p["event_type"] == "step.start"] == [
        "google_search_call",
        "model_output",
    ]
    assert found[-1]["event_type"] == "step.stop"
    assert interactions.models(["a"], next_page="n") == {
        "models": [{"name": "models/a", "displayName": "a"}],
        "nextPageToken": "n",
    }


def test_generate_content_can_be_blocked_and_sign_late():
    assert "candidates" not in payloads(generate_content.frames([], blocked=True))[0]
    late = payloads(generate_content.frames([text("a", signature="s")], trailing_signature=True))
    parts = [p["candidates"][0]["content"]["parts"][0] for p in late]
    assert parts == [{"text": "a"}, {"text": "", "thoughtSignature": "s"}]


def test_every_dialect_lists_models():
    for dialect in streams.DIALECTS.values():
        assert "m-1" in json.dumps(dialect.models(["m-1"]))
