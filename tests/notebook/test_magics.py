"""%%mmsp and %mmsp in a shell of this process (a terminal, as far as the extension can tell)."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell

from mmsp_nb import Conversation, hosts, tools
from mmsp_nb.protocol.errors import RateLimitError


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell with the extension loaded, without keys, without registered tools."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY", "CLIENT_TYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MMSP_MODEL", "demo")
    monkeypatch.setattr(tools.registry, "_tools", {})
    before = hosts.current()
    InteractiveShell.clear_instance()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.run_line_magic("load_ext", "mmsp_nb")
    try:
        yield shell
    finally:
        shell.run_line_magic("unload_ext", "mmsp_nb")
        InteractiveShell.clear_instance()
        assert hosts.current() is before


def use(shell: InteractiveShell, *scripts: list[Any], **options: Any) -> scripted.Scripted:
    """Let cells talk to a client that follows these scripts."""
    client = scripted.Scripted(*scripts)
    shell.user_ns["chat"] = Conversation(client=client, **options)
    shell.run_line_magic("mmsp", "use chat")
    return client


def run(shell: InteractiveShell, code: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a cell; what it wrote, both streams."""
    capsys.readouterr()
    shell.run_cell(code)
    out, err = capsys.readouterr()
    return out + err


def said(client: scripted.Scripted, index: int = -1) -> str:
    """The text that was sent."""
    return "".join(item.get("text", "") for item in client.requests[index]["content_items"])


def test_loading_says_in_one_line_what_answers_and_why(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    said = run(shell, "%reload_ext mmsp_nb", capsys)
    assert said == "mmsp: demo (MMSP_MODEL is set). Change it: %mmsp model ID. Help: %mmsp help\n"


def test_loading_is_light() -> None:
    """Neither the network nor the schema library is loaded before something is asked."""
    code = (
        "import sys, IPython.core.interactiveshell as i; s = i.InteractiveShell.instance();"
        "s.run_line_magic('load_ext', 'mmsp_nb');"
        "print([m for m in ('httpx', 'pydantic', 'mistune', 'anywidget') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_unloading_takes_everything_back(shell: InteractiveShell) -> None:
    def state() -> list[Any]:
        callbacks = [len(shell.events.callbacks[name]) for name in ("pre_run_cell", "post_run_cell")]
        transformers = [len(shell.input_transformers_post), len(shell.input_transformers_cleanup)]
        magics = ["mmsp" in shell.magics_manager.magics[kind] for kind in ("line", "cell")]
        return [callbacks, transformers, magics, len(shell.configurables), hosts.current()]

    loaded = state()
    shell.run_line_magic("unload_ext", "mmsp_nb")
    unloaded = state()
    assert unloaded[2] == [False, False]
    shell.run_line_magic("load_ext", "mmsp_nb")
    shell.run_line_magic("reload_ext", "mmsp_nb")
    assert state()[:4] == loaded[:4]
    shell.run_line_magic("unload_ext", "mmsp_nb")
    assert state() == unloaded
    shell.run_line_magic("load_ext", "mmsp_nb")


def test_the_demo_answers_without_any_preparation(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    written = run(shell, "%%mmsp\nhello", capsys)
    assert "Hello" in written
    assert shell.user_ns["_mmsp"].text in written


def test_the_prompt_reaches_the_model_byte_for_byte(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    client = use(shell, [scripted.text("ok")])
    shell.user_ns |= {"x": 7, "name": "Ada"}
    run(shell, "%%mmsp\n{x} $x ${x} {{name}} \\{{x}}\n  !ls %time\t'q'\n", capsys)
    assert said(client) == "{x} $x ${x} Ada {{x}}\n  !ls %time\t'q'"


@pytest.mark.parametrize(
    "line",
    ["%mmsp ask what's up?", "%mmsp ask {x} and $x?", 'a = %mmsp ask is it "so"?', "if True:\n    %mmsp ask why?"],
)
def test_a_question_in_a_line_is_a_question(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    client = use(shell, [scripted.text("fine")])
    shell.user_ns["x"] = 7
    run(shell, line, capsys)
    assert said(client) == line.partition("ask ")[2]


def test_a_string_that_looks_like_a_question_is_left_alone(shell: InteractiveShell) -> None:
    code = 'text = """\n%mmsp ask why?\n"""'
    shell.run_cell(code)
    assert shell.user_ns["text"] == "\n%mmsp ask why?\n"


def test_a_line_returns_its_answer_which_is_not_shown_twice(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    use(shell, [scripted.text("forty-two")], [scripted.text("forty-three")])
    run(shell, "answer = %mmsp ask six times seven", capsys)
    assert shell.user_ns["answer"].text == "forty-two"
    assert "forty-two" in run(shell, "answer", capsys), "in a later cell it is shown"
    assert run(shell, "chat.ask('and one more')", capsys).count("forty-three") == 1


def test_out_binds_the_answer_also_when_the_call_failed(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    use(shell, [scripted.text("half of it, ", "and"), RateLimitError("429: slow down", status=429)])
    written = run(shell, "%%mmsp --out reply\nhi", capsys)
    assert "half of it" in written
    assert written.rstrip().splitlines()[-1] == "RateLimitError: 429: slow down"
    assert "Traceback" not in written
    assert shell.user_ns["reply"].text == shell.user_ns["_mmsp"].text == "half of it, and"
    assert shell.user_ns["reply"].turn.state == "partial"


def test_an_error_in_ones_own_code_names_ones_own_lines(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    use(shell, [RateLimitError("429", status=429)])
    written = run(shell, "def f():\n    return chat.ask('x')\n\nf()", capsys)
    lines = [line for line in written.splitlines() if line]
    assert lines[:2] == ["line 4: f()", "line 2 in f: return chat.ask('x')"]
    assert lines[-1] == "RateLimitError: 429"
    assert "mmsp_nb" not in written


def test_an_error_can_be_caught_as_what_it_is(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    use(shell, [RateLimitError("429", status=429)])
    shell.user_ns["RateLimitError"] = RateLimitError
    assert "caught 429" in run(
        shell, "try:\n    chat.ask('x')\nexcept RateLimitError as e:\n    print('caught', e.status)", capsys
    )


def test_options_reach_the_request_of_this_cell_only(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    client = use(shell, [scripted.text("a")], [scripted.text("b")], system="Be kind.")
    shell.user_ns["tone"] = "rude"
    run(shell, "%%mmsp --system 'Be {{tone}}.' --temperature 0.5 --max-tokens 9 --thinking low\nhi", capsys)
    run(shell, "%%mmsp\nhi", capsys)
    first, second = client.configs
    assert (first["system_prompt"], first["temperature"], first["max_tokens"]) == ("Be rude.", 0.5, 9)
    assert first["thinking_level"] == "low"
    assert second == {"system_prompt": "Be kind."}


def test_quiet_draws_nothing_and_dry_run_sends_nothing(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    client = use(shell, [scripted.text("secretly")])
    assert run(shell, "%%mmsp --quiet\nhi", capsys) == ""
    assert shell.user_ns["_mmsp"].text == "secretly"
    written = run(shell, "%%mmsp --dry-run --no-tools\nhi {{1+1}}", capsys)
    assert written.rstrip().endswith("prompt:\nhi 2")
    assert len(client.requests) == 1


def test_tools_run_and_print_into_the_cell_in_order(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        shell,
        "from mmsp_nb import tool\n@tool\ndef tide(port: str):\n    'Tide'\n    print('looking', port)\n    return 5",
        capsys,
    )
    client = use(
        shell,
        [scripted.text("Let me see."), scripted.call("tide", port="Brest")],
        [scripted.text("At 5.")],
        tools=["tide"],
    )
    written = run(shell, "%%mmsp\nwhen?", capsys)
    lines = [line for line in written.splitlines() if line]
    assert lines == ["Let me see.", '● tide(port="Brest")', "looking Brest", '✓ tide(port="Brest") → 5', "At 5."]
    assert client.requests[1]["content_items"][0]["text"] == "5"
    assert shell.user_ns["_mmsp"].calls[0].result == 5


def test_a_tool_that_only_prints_has_said_its_result(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "from mmsp_nb import tool\n@tool\ndef report():\n    'Report'\n    print('all is well')", capsys)
    client = use(shell, [scripted.call("report")], [scripted.text("Good.")], tools=["report"])
    run(shell, "%%mmsp\nhow is it?", capsys)
    assert client.requests[1]["content_items"][0]["text"] == "all is well"
    assert sys.stdout.__class__.__name__ != "_Stream", "the streams are put back"


def test_registered_tools_are_offered_and_can_be_chosen(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "def f(x: int):\n    'F'\n\ndef g():\n    'G'", capsys)
    assert "no tools" in run(shell, "%mmsp tools", capsys)
    assert "f(x: integer)" in run(shell, "%mmsp tools add f, g", capsys)
    run(shell, "%%mmsp --new --dry-run\nhi", capsys)
    assert "tools: f, g" in run(shell, "%%mmsp --dry-run --chat main\nhi", capsys)
    assert "tools: g" in run(shell, "%%mmsp --dry-run --tools g\nhi", capsys)
    assert "tools: none" in run(shell, "%%mmsp --dry-run --no-tools\nhi", capsys)
    assert "g()" in run(shell, "%mmsp tools remove f", capsys)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("%%mmsp --modle x\nhi", "there is no option --modle; did you mean '--model'?"),
        ("%%mmsp -m gpt-5.5\nhi", "OPENAI_API_KEY"),
        ("%%mmsp -m nonsense\nhi", "any other needs %%mmsp --client-type, as in 'openai-chat'"),
        ("%%mmsp --ask tyde\nhi", "--ask: there is no tool 'tyde'; did you mean 'tide'?"),
        ("%%mmsp --ask tide --tools tide,tdie\nhi", "did you mean 'tide'"),
        ("%%mmsp --ask w*\nhi", "--ask: there is no tool 'w*'"),
        ("%%mmsp --client-type openai-caht -m x\nhi", "did you mean 'openai-chat'?"),
        ("%%mmsp --tools tyde\nhi", "no tool or function is called 'tyde'; did you mean 'tide'?"),
        ("%%mmsp\nhi {{nmae}}", "line 2: {{nmae}}: NameError: name 'nmae' is not defined; did you mean 'name'?"),
        ("%%mmsp --out 1\nhi", "--out needs the name of a variable"),
        ("%%mmsp\n  \n", "the prompt is empty"),
        ("%mmsp modle", "there is no %mmsp modle; did you mean 'model'?"),
        ("%mmsp model a b", "%mmsp model cannot use 'b'"),
        ("%mmsp use chta", "there is no chat 'chta'; did you mean 'chat'?; %mmsp new chta begins one"),
        ("%mmsp use", "%mmsp use needs the name of a chat"),
        ("%mmsp tools ad f", "write add or remove; did you mean 'add'?"),
        ("%mmsp tools add", "needs the name of a function"),
        ("%mmsp tools remove tyde", "there is no tool 'tyde'; did you mean 'tide'?"),
        ("%%mmsp\n\\frac{{zz}}{2}", "name 'zz' is not defined; write \\{{ for the characters themselves"),
        ("%mmsp continue", "there is nothing to continue: ask first"),
        ("%mmsp undo", "there is nothing to undo"),
        ("%mmsp save nowhere/talk.jsonl", "nowhere/talk.jsonl was not written: No such file or directory"),
        ("%mmsp new chat", "there is a chat 'chat' already"),
    ],
)
def test_each_mistake_is_one_line_and_nothing_is_sent(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], code: str, message: str
) -> None:
    def tide() -> None:
        """Tide"""

    tools.registry.add(tide)
    client = use(shell, tools=tools.registry)
    shell.user_ns["name"] = "x"
    written = run(shell, code, capsys)
    assert written.startswith("UsageError: ")
    assert written.count("\n") == 1
    assert message in written
    assert client.requests == []


def test_chats_are_kept_apart_and_can_be_returned_to(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    use(shell, [scripted.text("one")], [scripted.text("two")])
    run(shell, "%%mmsp\nfirst", capsys)
    assert "new chat work with" in run(shell, "%mmsp new work", capsys)
    run(shell, "%%mmsp\nhello", capsys)
    listed = run(shell, "%mmsp chats", capsys)
    assert "* work  demo, 1 turn: hello" in listed
    assert "  chat  scripted-model, 1 turn: first" in listed
    run(shell, "%%mmsp --chat chat\nsecond", capsys)
    assert [turn.text for turn in shell.user_ns["chat"].turns] == ["one", "two"]
    assert "* chat" in run(shell, "%mmsp chats", capsys)


def test_new_begins_the_chat_anew_with_the_same_model(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "%%mmsp\nhello", capsys)
    run(shell, "%%mmsp\nhello", capsys)
    run(shell, "%%mmsp --new\nhello", capsys)
    assert "chat   main, 1 turn" in run(shell, "%mmsp", capsys)


def test_reset_can_be_undone_and_undo_takes_back_a_turn(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    use(shell, [scripted.text("one")], [scripted.text("two")])
    run(shell, "%%mmsp\nfirst", capsys)
    run(shell, "%%mmsp\nsecond", capsys)
    assert "forgot 2 turns" in run(shell, "%mmsp reset", capsys)
    assert "nothing has been said yet" in run(shell, "%mmsp history", capsys)
    run(shell, "%mmsp undo", capsys)
    assert [turn.text for turn in shell.user_ns["chat"].turns] == ["one", "two"]


def test_undo_goes_back_to_the_chats_that_were_begun_anew(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    for prompt in ("My name is Ada", "My name is Bob", "My name is Eve"):
        run(shell, f"%%mmsp --new\n{prompt}", capsys)
    run(shell, "%mmsp undo", capsys)
    back = "brought back main as it was before it was begun anew, 1 turn"
    assert back in run(shell, "%mmsp undo", capsys)
    assert "Bob" in run(shell, "%%mmsp\nWhat is my name?", capsys)
    run(shell, "%mmsp undo", capsys)
    run(shell, "%mmsp undo", capsys)
    assert back in run(shell, "%mmsp undo", capsys)
    assert "Ada" in run(shell, "%mmsp history", capsys)
    run(shell, "%mmsp undo", capsys)
    assert "there is nothing to undo" in run(shell, "%mmsp undo", capsys)


def test_a_client_of_ones_own_has_the_history_of_the_chat_that_is_brought_back(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    client = use(shell, [scripted.text("one")], [scripted.text("two")], [scripted.text("three")])
    shell.user_ns["mine"] = client
    run(shell, "%%mmsp --chat talk --client mine\nfirst", capsys)
    run(shell, "%%mmsp --chat talk --client mine --new\nsecond", capsys)
    run(shell, "%mmsp undo", capsys)
    assert "brought back talk" in run(shell, "%mmsp undo", capsys)
    run(shell, "%%mmsp\nthird", capsys)
    assert [message["content_items"][0]["text"] for message in client.history[:3]] == ["first", "one", "third"]


def test_continue_asks_again_what_failed(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    client = use(shell, [RateLimitError("429", status=429)], [scripted.text("now it works")])
    run(shell, "%%mmsp\nhi", capsys)
    assert "now it works" in run(shell, "%mmsp continue", capsys)
    assert said(client, 0) == said(client, 1) == "hi"


def test_continue_goes_on_with_a_text_that_came_to_the_end_of_its_budget(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    client = use(shell, [scripted.text("half"), scripted.stop("length")], [scripted.text("the rest")])
    run(shell, "%%mmsp\nhi", capsys)
    assert "the rest" in run(shell, "%mmsp continue", capsys)
    assert said(client) == "Go on exactly where your last answer was cut off."
    assert "nothing to continue: the last answer is complete" in run(shell, "%mmsp continue", capsys)


def test_a_failure_before_anything_came_keeps_nothing_and_says_so(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    use(shell, [RateLimitError("429", status=429)], [scripted.text("half"), RateLimitError("429", status=429)])
    assert "kept" not in run(shell, "%%mmsp\nhi", capsys)
    assert "failed; what had come so far is kept" in run(shell, "%%mmsp\nagain", capsys)


def test_an_error_outside_a_question_shows_none_of_our_stack(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "OpenAIOfficialClient needs a key: set OPENAI_API_KEY or pass api_key"
    code = "from mmsp_nb import Conversation\ndef f():\n    return Conversation('gpt-5.5')\nf()"
    lines = run(shell, code, capsys).strip().splitlines()
    assert lines[-1] == f"ApiKeyRequiredError: {said}"
    assert lines[:-1] == ["line 4: f()", "line 3 in f: return Conversation('gpt-5.5')"]
    assert "nosuch" in run(shell, "try:\n    Conversation('nosuch')\nexcept Exception as e:\n    print(e)", capsys)


def test_a_file_that_is_no_conversation_is_named_once(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    written = run(shell, f"%mmsp load {path}", capsys)
    assert written.count(str(path)) == 1 and "this is no conversation" in written


def test_the_limit_of_a_cell_is_for_that_cell(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "from mmsp_nb import tool\n@tool\ndef f():\n    'F'\n    return 1", capsys)
    use(shell, [scripted.call("f")], [scripted.text("done")], tools=["f"])
    written = run(shell, "%%mmsp --max-turns 1\ngo", capsys)
    assert "stopped at the limit of requests; %mmsp continue goes on" in written
    assert shell.user_ns["chat"].max_turns == 10
    assert "done" in run(shell, "%mmsp continue", capsys)


def test_settings_are_traits(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "%config MMSPMagics.model = 'demo:fast'", capsys)
    assert "demo:fast (MMSPMagics.model is set)" in run(shell, "%mmsp model", capsys)
    assert "system" in run(shell, "%config MMSPMagics", capsys)
    run(shell, "%config MMSPMagics.system = 'Be brief.'", capsys)
    assert "system_prompt: Be brief." in run(shell, "%%mmsp --dry-run\nhi", capsys)
    run(shell, "%config MMSPMagics.max_turns = 0", capsys)
    assert shell.magics_manager.registry["MMSPMagics"].max_turns == 10


def test_history_shows_the_turns_as_text(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    use(shell, [scripted.text("<b>bold</b>")])
    run(shell, "%%mmsp\nfirst question", capsys)
    written = run(shell, "%mmsp history", capsys)
    assert "first question" in written
    assert "<b>bold</b>" in written


def test_models_are_listed_and_searched(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert "client type" in run(shell, "%mmsp models gemini", capsys)
    assert "others work too" in run(shell, "%mmsp models nonsense", capsys)


def test_a_key_never_reaches_the_screen(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", "a-secret-key-value")
    use(shell, [scripted.text("it is a-secr", "et-key-value")], [RuntimeError("bad key a-secret-key-value")])
    written = run(shell, "%%mmsp\nwhat is it?", capsys)
    written += run(shell, "%%mmsp --dry-run\n{{'a-secret-key-value'}}", capsys)
    written += run(shell, "%%mmsp\nagain", capsys)
    written += run(shell, "%mmsp history", capsys)
    assert "it is ***" in written
    assert "a-secr" not in written


def test_completion_knows_options_commands_models_tools_and_variables(shell: InteractiveShell) -> None:
    from mmsp_nb.notebook.completion import candidates

    def tide() -> None:
        """Tide"""

    tools.registry.add(tide)
    magics = shell.magics_manager.registry["MMSPMagics"]
    shell.user_ns["frame"] = 1

    def complete(line: str, in_cell: bool = False) -> list[str]:
        return candidates(line, in_cell, shell.user_ns, magics)

    assert "--temperature" in complete("%%mmsp --te")
    assert "history" in complete("%mmsp hi")
    assert "claude-opus-5-5" in complete("%%mmsp -m cl")
    assert "demo" in complete("%mmsp model ")
    assert complete("%%mmsp --tools ") == ["tide"]
    assert "frame" in complete("look at {{fr", in_cell=True)
    assert complete("look at fr", in_cell=True) == []
    assert "high" in complete("%mmsp ask --thinking ")


def test_the_completer_of_the_shell_uses_it(shell: InteractiveShell) -> None:
    _, found = shell.complete("hist", "%mmsp hist", 10)
    assert "history" in found
