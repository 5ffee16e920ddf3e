"""Keys are planted in all that a model gets to read, and looked for in what a provider has received."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import planted
import pytest
from IPython.core.interactiveshell import InteractiveShell
from planted import found, screen

import mmsp_nb
from mmsp_nb import AutoLLMClient, Conversation, load
from mmsp_nb.masking import conceal, concealable, environment_secrets
from mmsp_nb.testing import FakeProvider, RecordedRequest, Reply, parts, streams

pytestmark = pytest.mark.filterwarnings("ignore:.* replaced by")

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KNOWN = (planted.CLIENT, planted.ENVIRONMENT, planted.HEADER, planted.QUERY, planted.USER)


def received(provider: FakeProvider) -> str:
    """The bodies of all requests. Headers and addresses are not a model's to read."""
    return json.dumps([request.body for request in provider.requests], ensure_ascii=False)


def answers(provider: FakeProvider, *calls: Any) -> None:
    """First the calls, if there are any, then an answer."""

    def reply(request: RecordedRequest) -> Reply:
        asks = calls and request.body["messages"][-1]["role"] != "tool"
        return Reply.stream(streams.DIALECTS["chat"].frames([*calls] if asks else [parts.text("Fine.")]))

    provider.when(lambda request: True, reply)


def say(provider: FakeProvider, client: AutoLLMClient, prompt: Any, **options: Any) -> Conversation:
    answers(provider)
    chat = Conversation(client=client, **options)
    chat.ask(prompt)
    assert provider.requests
    return chat


# prompts


@pytest.mark.parametrize("secret", [*KNOWN, planted.PROMPT])
def test_a_prompt_arrives_without_keys(provider: FakeProvider, client: AutoLLMClient, secret: str) -> None:
    chat = say(provider, client, f"Why does {secret} fail, and {secret!r}?")
    assert found(received(provider)) == [] and "Why does " in received(provider)
    assert chat.turns[-1].masked == {"prompt": 2}


def test_what_kind_of_key_it_was_is_still_told(provider: FakeProvider, client: AutoLLMClient) -> None:
    chat = say(provider, client, f"Is {planted.PROMPT} a key?")
    assert chat.turns[-1].prompt == "Is sk-ant-*** a key?" and chat.turns[-1].prompt in received(provider)


def test_items_and_messages_arrive_without_keys_and_are_not_changed(
    provider: FakeProvider, client: AutoLLMClient
) -> None:
    item = {"type": "text.done", "text": f"one {planted.PROMPT}"}
    message = {"role": "user", "content_items": [{"type": "text.done", "text": f"two {planted.ENVIRONMENT}"}]}
    picture = {
        "type": "image_url.done",
        "image_url": f"data:image/png;base64,{PIXEL}",
    }
    chat = say(provider, client, [item, message, f"three {planted.CLIENT}", picture])
    assert found(received(provider)) == [] and picture["image_url"] in received(provider)
    assert planted.PROMPT in item["text"] and planted.ENVIRONMENT in message["content_items"][0]["text"]
    assert chat.turns[-1].masked == {"prompt": 3}


def test_a_system_prompt_arrives_without_keys(provider: FakeProvider, client: AutoLLMClient) -> None:
    chat = say(provider, client, "hello", system=f"You know {planted.PROMPT} and {planted.ENVIRONMENT}.")
    assert "You know sk-ant-*** and ***." in received(provider)
    assert chat.turns[-1].masked == {"system": 2}
    assert planted.PROMPT in str(chat.system), "it is the user's, and may be sent when that is wished"


async def test_streams_and_async_questions_arrive_without_keys(provider: FakeProvider, client: AutoLLMClient) -> None:
    answers(provider)
    chat = Conversation(client=client)
    await chat.ask_async(f"one {planted.PROMPT}")
    async for _ in chat.stream(f"two {planted.PROMPT}"):
        pass
    assert len(provider.requests) == 2 and found(received(provider)) == []
    assert [turn.masked for turn in chat.turns] == [{"prompt": 1}, {"prompt": 1}]


def test_a_prompt_that_failed_is_sent_again_without_keys(provider: FakeProvider, client: AutoLLMClient) -> None:
    provider.add(Reply.json({"error": {"message": "no"}}, 400))
    chat = Conversation(client=client)
    with pytest.raises(mmsp_nb.MMSPError):
        chat.ask(f"My key is {planted.PROMPT}.")
    answers(provider)
    assert chat.ask().text == "Fine." and found(received(provider)) == []
    assert len(provider.requests) == 2 and chat.turns[0].masked == {"prompt": 1}


def test_a_summary_that_was_given_arrives_without_keys(provider: FakeProvider, client: AutoLLMClient) -> None:
    chat = say(provider, client, "hello")
    summary = chat.compact(f"The key is {planted.PROMPT}.", keep=0)
    assert summary is not None and summary.masked == {"prompt": 1}
    chat.ask("And now?")
    assert "The key is sk-ant-***." in received(provider) and found(received(provider)) == []


# tools


def leaky(port: str, key: str = planted.PROMPT) -> dict[str, str]:
    """The tide.

    Args:
        port: Where.
        key: Whose, for instance ghp_fake1result11111111111111111111.
    """
    if port == "Rome":
        raise ValueError(f"no port with {planted.ERROR} and {planted.ENVIRONMENT}")
    return {"level": "6.4 m", "with": planted.RESULT, "also": planted.CLIENT}


def test_results_arrive_without_keys_and_the_objects_stay(provider: FakeProvider, client: AutoLLMClient) -> None:
    answers(
        provider,
        parts.call("leaky", '{"port": "Brest"}', id="c1"),
        parts.call("leaky", '{"port": "Rome"}', id="c2"),
    )
    chat = Conversation(client=client, tools=[leaky])
    answer = chat.ask("How high?")
    assert len(provider.requests) == 2 and "6.4 m" in received(provider)
    assert found(received(provider)) == []
    assert answer.masked == {"tools": 2, "results": 3}  # the error's shaped key was masked by the tool's own error
    assert answer.calls[0].result == {"level": "6.4 m", "with": planted.RESULT, "also": planted.CLIENT}
    assert found(answer.calls[0].text) == []
    chat.ask("Once more?")
    assert found(received(provider)) == []


async def test_async_tools_and_what_a_person_says_of_a_call_arrive_without_keys(
    provider: FakeProvider, client: AutoLLMClient
) -> None:
    async def fetch(port: str) -> str:
        return planted.RESULT

    answers(provider, parts.call("fetch", '{"port": "Brest"}', id="c1"))
    chat = Conversation(client=client, tools=[fetch])
    assert (await chat.ask_async("How high?")).masked == {"results": 1}
    asking = Conversation(client=client.sibling(), tools=[fetch], policy=mmsp_nb.Policy(ask=["*"]))
    async for _ in asking.stream("How high?", approve="wait"):
        pass
    answer = await asking.deny_async(f"use {planted.PROMPT} for it")
    assert "sk-ant-*** for it" in received(provider) and answer.masked == {"results": 1}
    assert found(received(provider)) == []


def test_the_results_of_a_server_of_tools_arrive_without_keys(provider: FakeProvider, client: AutoLLMClient) -> None:
    pytest.importorskip("mcp")
    from mmsp_nb.mcp_servers import MCPServer

    code = (
        "from mcp.server import MCPServer\n"
        "server = MCPServer('odd')\n"
        "@server.tool()\n"
        f"def tell() -> str:\n    '''Tells {planted.PROMPT}.'''\n    return 'it is {planted.RESULT}'\n"
        "server.run()\n"
    )
    server = MCPServer("odd", [sys.executable, "-c", code], timeout=20)
    try:
        answers(provider, parts.call("odd_tell", "{}", id="c1"))
        chat = Conversation(client=client, tools=server.tools, policy=mmsp_nb.Policy(allow=["*"]))
        answer = chat.ask("Tell")
    finally:
        server.close()
    assert "it is ghp_***" in received(provider) and "Tells sk-ant-***" in received(provider)
    assert found(received(provider)) == [] and answer.masked["results"] >= 1


# rows


def test_rows_arrive_without_keys(provider: FakeProvider, client: AutoLLMClient) -> None:
    answers(provider)
    rows = [f"one {planted.PROMPT}", f"two {planted.ENVIRONMENT} {planted.CLIENT}", "three"]
    result = mmsp_nb.map(rows, "About {{row}}", client=client, system=f"Use {planted.RESULT}", progress=False)
    assert result.ok and len(provider.requests) == 3 and "About one sk-ant-***" in received(provider)
    assert found(received(provider)) == []
    assert result.masked == {"prompt": 3, "system": 3} and "6 keys masked" in repr(result)
    assert result.answers[0].turn.prompt == "About one sk-ant-***" and result.answers[0].masked["prompt"] == 1


def test_rows_are_sent_as_they_are_when_that_is_said(provider: FakeProvider, client: AutoLLMClient) -> None:
    answers(provider)
    result = mmsp_nb.map([planted.PROMPT], client=client, progress=False, mask_keys=False)
    assert planted.PROMPT in received(provider) and result.masked == {}


def test_what_was_masked_outlives_a_checkpoint(provider: FakeProvider, client: AutoLLMClient, tmp_path: Path) -> None:
    answers(provider)
    given: dict[str, Any] = {"client": client, "checkpoint": tmp_path / "kept", "progress": False}
    mmsp_nb.map([planted.PROMPT, "b"], **given)
    again = mmsp_nb.map([planted.PROMPT, "b"], **given)
    assert len(provider.requests) == 2 and again.masked == {"prompt": 1}


# the way out, and being told


def test_keys_are_sent_when_that_is_said(provider: FakeProvider, client: AutoLLMClient) -> None:
    chat = say(provider, client, f"Is {planted.PROMPT} a key?", mask_keys=False)
    assert planted.PROMPT in received(provider) and chat.turns[-1].masked == {}
    assert chat.fork().mask_keys is False
    chat.mask_keys = True
    chat.ask(f"And {planted.RESULT}?")
    assert planted.RESULT not in received(provider)


@pytest.mark.filterwarnings("default")
def test_a_script_is_warned_where_it_asks(provider: FakeProvider, client: AutoLLMClient) -> None:
    with pytest.warns(UserWarning, match="1 key in the prompt was replaced") as caught:
        say(provider, client, f"Is {planted.PROMPT} a key?")
    assert found(str(caught[0].message)) == [] and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Conversation(client=client.sibling()).ask("Nothing to tell")


def test_the_count_is_saved_and_loaded(provider: FakeProvider, client: AutoLLMClient, tmp_path: Path) -> None:
    chat = say(provider, client, f"Is {planted.PROMPT} a key?")
    path = chat.save(tmp_path / "talk.jsonl")
    again = load(path, client=client.sibling())
    assert again.turns[0].masked == {"prompt": 1} and again.mask_keys
    assert again.turns[0].copy().masked is not again.turns[0].masked
    damaged = path.read_text().replace('{"prompt": 1}', '{"prompt": "many"}')
    path.write_text(damaged)
    with pytest.raises(mmsp_nb.MMSPError, match="masked"):
        load(path)


def test_a_file_cannot_switch_it_off(provider: FakeProvider, client: AutoLLMClient, tmp_path: Path) -> None:
    chat = say(provider, client, "hello", mask_keys=False)
    assert load(chat.save(tmp_path / "talk.jsonl"), client=client.sibling()).mask_keys


# what is no key


@pytest.mark.parametrize(
    "text",
    [
        "hf_dataset_train_2024.parquet and hf_hub_20241130120000_dump",
        "fw_update_handler_v2_main(), gsk_trial_data_2024.csv",
        "sk-learn-0.24-documentation, task-1234567890123456, sk-estimator-check-2024-results",
        "ASIA_PACIFIC_REGION_2024_TOTALS",
        "eyJhIjogMSwgImIiOiBbMSwgMiwgM119",  # base64 of JSON
        "password = tokenizer_2024; api_key: 'of-the-example-12'; Authorization: Bearer abcdefgh1234",
        "data:image/png;base64," + "iVBORw0KGgo/eyJhbGciOi+sk" * 40,
        "sk-***, ***",
    ],
)
def test_what_only_begins_like_a_key_stays(text: str) -> None:
    assert conceal(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("sk-0123456789abcdef0123456789abcdef", "sk-***"),
        ("sk-proj-Ab3_dEf-Gh1jKlMn0pQrStUvWxYz0123", "sk-proj-***"),
        ("hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "hf_***"),
        ("AIzaSyA-0b1C2_d3E4f5G6h7I8j9K0l1M2n3O4p", "AIza***"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA***"),
        ("xoxb-123456789012-123456789012-AbCdEfGh", "xoxb-***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "eyJ***"),
    ],
)
def test_keys_of_every_kind_are_taken_out(text: str, clean: str) -> None:
    assert conceal(f"before {text} after, ({text}).") == (f"before {clean} after, ({clean}).", 2)
    assert conceal(f"It is {text}.") == (f"It is {clean}.", 1)


def test_plain_words_and_short_numbers_of_variables_stay() -> None:
    words = ["development", "Production", "not-needed", "your-api-key-here", "12345678", "short", "CHANGE_ME"]
    assert concealable(words) == []
    secrets = ["a-passphrase-of-many-words-indeed", "hunter22", "qWeRtYuIoP", "123456789012", "a/b+c=d!e"]
    assert {value for value, _ in concealable(secrets)} == set(secrets)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("AZURE_OPENAI_KEY", "0a1b2c3d4e5f60718293", "0a1b2c3d4e5f60718293"),
        ("GITHUB_PAT", "pat-99887766-aaqq", "pat-99887766-aaqq"),
        ("SIGNING_PRIVATE_KEY", "-----BEGIN KEY-----\nMIIabc123", "-----BEGIN KEY-----\nMIIabc123"),
        ("PGPASSWORD", "tide-4-brest", "tide-4-brest"),
        ("MAIL_PASSWD", "tide-4-brest", "tide-4-brest"),
        ("DATABASE_URL", "postgres://bob:tide-4-brest@db/tides", "tide-4-brest"),
        ("HTTPS_PROXY", "http://bob:tide-4-brest@proxy:3128", "tide-4-brest"),
    ],
)
def test_a_secret_is_known_by_the_names_that_variables_have(name: str, value: str, secret: str) -> None:
    assert environment_secrets({name: value}) == {secret}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SORT_KEY", "created_at"),
        ("PARTITION_KEY", "customer_of_the_month"),
        ("TLS_KEY", "/etc/ssl/private/server-2024.pem"),
        ("SIGNING_KEY", "C:\\keys\\server-2024.pem"),
        ("JWKS_KEY", "https://login.example/keys/2024"),
        ("DATABASE_URL", "postgres://postgres:postgres@localhost:5432/tides"),
        ("SERVER", "https://127.0.0.1:8888/?next=a@b"),
        ("MONKEY", "0a1b2c3d4e5f60718293"),
    ],
)
def test_a_variable_that_is_only_called_a_key_is_no_secret(name: str, value: str) -> None:
    assert environment_secrets({name: value}) == set()


def test_a_known_value_is_found_as_it_stands_in_json() -> None:
    known = concealable(['a"key\\of-9'])
    assert conceal(json.dumps({"key": 'a"key\\of-9'}), known) == ('{"key": "***"}', 1)


def test_a_long_text_costs_next_to_nothing() -> None:
    text = "def f(x): return task-list + ask-me 12345 " * 25_000  # a megabyte with thousands of near misses
    begin = time.process_time()
    assert conceal(text) == (text, 0)
    assert time.process_time() - begin < 2


# cells


@pytest.fixture
def shell(shell: InteractiveShell, provider: FakeProvider, client: AutoLLMClient) -> InteractiveShell:
    answers(provider)
    shell.user_ns.update(chat=Conversation(client=client), value={"key": planted.PROMPT})
    shell.run_line_magic("mmsp", "use chat")
    return shell


CELLS = {
    "typed": f"%%mmsp\nIs {planted.PROMPT} a key?",
    "a value": "%%mmsp\nIs {{value}} a key?",
    "a file": "%%mmsp --file keys.txt\nWhat is this?",
    "a system prompt": f"%%mmsp --system 'Use {planted.PROMPT}'\nhello",
    "a line": f"%mmsp ask Is {planted.PROMPT} a key?",
    "Python": f"chat.ask('Is {planted.PROMPT} a key?')",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_says_what_the_model_did_not_read(
    shell: InteractiveShell, provider: FakeProvider, tmp_path: Path, cell: str
) -> None:
    (tmp_path / "keys.txt").write_text(f"key = {planted.PROMPT}\n")
    shown = screen(shell, cell)
    assert found(received(provider)) == [] and "sk-ant-***" in received(provider), shown
    assert "was replaced by ***; the model did not read it" in shown and "mask_keys = False" in shown
    assert found(shown) == []


def test_a_system_prompt_is_spoken_of_once(shell: InteractiveShell) -> None:
    shell.user_ns["chat"].system = f"Use {planted.PROMPT}"
    assert "1 key in the system prompt was replaced" in screen(shell, "%%mmsp\none")
    assert "replaced" not in screen(shell, "%%mmsp\ntwo")


def test_a_dry_run_says_it_before(shell: InteractiveShell, provider: FakeProvider) -> None:
    shown = screen(shell, "%%mmsp --dry-run\nIs {{value}} a key?")
    assert "keys: 1 key in the prompt is replaced by ***; the model does not read it" in shown
    assert found(shown) == [] and provider.requests == [] and shell.user_ns["chat"].turns == []


def test_the_setting_sends_keys_and_counts_for_the_chat_in_use(shell: InteractiveShell, provider: FakeProvider) -> None:
    screen(shell, "%config MMSPMagics.mask_keys = False")
    shown = screen(shell, f"%%mmsp\nIs {planted.PROMPT} a key?")
    assert planted.PROMPT in received(provider) and "replaced" not in shown
    screen(shell, "%config MMSPMagics.mask_keys = True")
    screen(shell, f"%%mmsp\nIs {planted.RESULT} a key?")
    assert planted.RESULT not in received(provider)


def test_a_folder_that_switches_it_off_is_named(shell: InteractiveShell, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.mmsp_nb]\nmask_keys = false\n")
    shown = screen(shell, "%reload_ext mmsp_nb")
    assert "mask_keys is off" in shown and str(tmp_path / "pyproject.toml") in shown
    screen(shell, "%mmsp new other")
    magics: Any = shell.magics_manager.registry["MMSPMagics"]
    assert magics.chats.get("other").mask_keys is False


def test_columns_of_a_comparison_arrive_without_keys(shell: InteractiveShell, provider: FakeProvider) -> None:
    shell.user_ns["a"] = shell.user_ns["chat"].client.sibling()
    shown = screen(shell, f"%%mmsp --compare a,demo\nIs {planted.PROMPT} a key?")
    assert found(received(provider)) == found(shown) == []
    assert provider.requests and "did not read it" in shown
