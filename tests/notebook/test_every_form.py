# ruff: noqa: F811
"""Every option and subcommand has a case that works, one that is refused in a line, and a completion.

A name that is added to the tables fails these tests until it has its cases.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb import tools
from mmsp_nb.notebook.completion import candidates, matcher
from mmsp_nb.notebook.options import OPTIONS, SHORT, SUBCOMMANDS
from mmsp_nb.notebook.page import page

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

WORKS: dict[str, tuple[str, str]] = {
    "--model": ("-m demo:fast", "magics.chats.find().model == 'demo:fast'"),
    "--client": ("--client mine", "mine.requests"),
    "--client-type": ("-m demo --client-type openai-responses", "chat().client.client_type == 'openai-responses'"),
    "--chat": ("--chat side", "magics.chats.current == 'side'"),
    "--new": ("--new", "len(chat().turns) == 1"),
    "--system": ("--system 'Be {{tone}}.'", "_mmsp.turn.config['system_prompt'] == 'Be kind.'"),
    "--tools": ("--tools tide", "_mmsp.turn.tools == ['tide']"),
    "--no-tools": ("--no-tools", "_mmsp.turn.tools == []"),
    "--ask": ("--ask tide", "_mmsp.turn.asked['policy'] is not None"),
    "--type": ("--client typed --type int", "_mmsp.value == 42"),
    "--max-tokens": ("--max-tokens 50", "_mmsp.turn.config['max_tokens'] == 50"),
    "--temperature": ("--temperature 0.5", "_mmsp.turn.config['temperature'] == 0.5"),
    "--thinking": ("--thinking LOW", "_mmsp.turn.config['thinking_level'] == 'low'"),
    "--top-p": ("--top-p 0.9", "_mmsp.turn.config['top_p'] == 0.9"),
    "--seed": ("--seed 7", "_mmsp.turn.config['seed'] == 7"),
    "--stop": ("--stop END --stop FIN", "_mmsp.turn.config['stop'] == ['END', 'FIN']"),
    "--image": ("--image dot", "kinds() == ['text.done', 'image_url.done']"),
    "--file": ("--file notes.md", "'notes.md:' in _mmsp.turn.prompt"),
    "--trace": ("--trace tides", "_mmsp.turn.config['trace_id'] == 'tides'"),
    "--format": ("--format text", "_mmsp.complete"),
    "--compare": ("--compare demo,demo:fast --out both", "list(both) == ['demo', 'demo:fast']"),
    "--background": ("--background", "_mmsp.complete"),
    "--max-turns": ("--max-turns 1", "_mmsp.complete"),
    "--max-calls": ("--max-calls 1", "_mmsp.complete"),
    "--budget": ("--budget 0.05", "_mmsp.complete"),
    "--max-cost": ("--max-cost 0.05", "_mmsp.complete"),
    "--edit": ("--client editor --edit In[1]", "magics.waiting.edits.names() == ['In[1]']"),
    "--out": ("--out reply", "reply.complete"),
    "--quiet": ("--quiet", "_mmsp.complete and written == ''"),
    "--dry-run": ("--dry-run", "written.startswith('model: demo') and '_mmsp' not in globals()"),
    "--help": ("--help", "'An example:' in written and '_mmsp' not in globals()"),
}
"""For each option, how it is typed and what is true afterwards."""

REFUSED: dict[str, tuple[str, str]] = {
    "--model": ("-m cluade-opus", "no vendor is known for model 'cluade-opus'"),
    "--client": ("--client mien", "did you mean 'mine'?"),
    "--client-type": ("-m x --client-type openai-caht", "did you mean 'openai-chat'?"),
    "--chat": ("--chat", "--chat needs a value: --chat NAME"),
    "--new": ("--new=yes", "--new takes no value"),
    "--system": ("--system 'open", "the quote ' after --system is never closed"),
    "--tools": ("--tools tdie", "did you mean 'tide'?"),
    "--no-tools": ("--no-tools --tools tide", "--no-tools and --tools do not go together"),
    "--ask": ("--ask tdie", "--ask: there is no tool 'tdie'; did you mean 'tide'?"),
    "--type": ("--type Invocie", "did you mean 'Invoice'?"),
    "--max-tokens": ("--max-tokens 0", "--max-tokens needs a whole number from 1 on, not '0'"),
    "--temperature": ("--temperature hot", "--temperature needs a number from 0 on, not 'hot'"),
    "--thinking": ("--thinking hihg", "did you mean 'high'?"),
    "--top-p": ("--top-p 2", "--top-p needs a number from 0 to 1, not '2'"),
    "--seed": ("--seed x", "--seed needs a whole number, not 'x'"),
    "--stop": ("--stop", "--stop needs a value: --stop TEXT"),
    "--image": ("--image dott", "did you mean 'dot'?"),
    "--file": ("--file ntoes.md", "did you mean 'notes.md'?"),
    "--trace": ("--trace ../up", "trace"),
    "--format": ("--format htlm", "did you mean 'html'?"),
    "--compare": ("--compare demo,demo", "--compare names one of them twice"),
    "--background": ("--background --compare a,b", "--compare and --background do not go together"),
    "--max-turns": ("--max-turns many", "--max-turns needs a whole number from 1 on, not 'many'"),
    "--max-calls": ("--max-calls -1", "--max-calls needs a whole number from 1 on, not '-1'"),
    "--budget": ("--budget 0", "--budget needs US dollars above 0, such as 0.05, not '0'"),
    "--max-cost": ("--max-cost much", "--max-cost needs US dollars above 0, such as 0.05, not 'much'"),
    "--edit": ("--edit In[99]", "there is no In[99]: the last one is In[1]"),
    "--out": ("--out class", "--out needs the name of a variable, and 'class' cannot be one"),
    "--quiet": ("--quite", "there is no option --quite; did you mean '--quiet'?"),
    "--dry-run": ("--dyr-run", "there is no option --dyr-run; did you mean '--dry-run'?"),
    "--help": ("--hlep", "there is no option --hlep; did you mean '--help'?"),
}
"""For each option, how it can be mistyped, and a part of the line that is said."""

COMPLETED: dict[str, str] = {
    "--model": "demo:configured", "--client": "mine", "--client-type": "openai-chat", "--chat": "main",
    "--tools": "tide", "--ask": "tide", "--type": "Invoice", "--thinking": "high", "--image": "dot",
    "--file": "notes.md",
    "--format": "json", "--compare": "mine", "--edit": "In[1]", "--out": "tone", "--trace": "old-trace",
}  # fmt: skip
"""A value that is offered for each option whose values can be known."""

COMMANDS: dict[str, tuple[str, str]] = {
    "status": ("status", "model  demo"),
    "ask": ("ask hello", "Hello"),
    "continue": ("continue", "there is nothing to continue: the last answer is complete"),
    "approve": ("approve", "there is nothing to approve: no call waits for a word"),
    "deny": ("deny not now", "there is nothing to deny"),
    "model": ("model", "change it with %mmsp model ID"),
    "models": ("models gemini", "client type"),
    "tools": ("tools", "tide()"),
    "mcp": ("mcp", "MCP"),
    "retry": ("retry", "Hello"),
    "rerun": ("rerun stale", "nothing is stale"),
    "apply": ("apply", "there is nothing to apply"),
    "history": ("history", "hello"),
    "usage": ("usage", "next request:"),
    "why": ("why", "no cell has failed since mmsp was loaded"),
    "cells": ("cells made.ipynb", "made.ipynb"),
    "browse": ("browse", ""),
    "traces": ("traces nosuch", "nosuch"),
    "reset": ("reset", "forgot 1 turn; %mmsp undo brings them back"),
    "undo": ("undo", "took back: hello"),
    "redo": ("redo", "there is nothing to redo"),
    "fork": ("fork", "chat main-2 goes on from here"),
    "branch": ("branch", "* main  1 turn: hello"),
    "keep": ("keep a", "this chat has compared nothing yet"),
    "stop": ("stop", "nothing is being answered in the background"),
    "new": ("new side", "new chat side with demo"),
    "chats": ("chats", "* main  demo, 1 turn: hello"),
    "use": ("use main", "chat main with demo, 1 turn"),
    "save": ("save talk.jsonl", "saved talk.jsonl: 1 turn"),
    "load": ("load kept.jsonl", "chat kept with demo, 1 turn"),
    "export": ("export talk.md", "wrote talk.md"),
    "record": ("record tape.jsonl", "tape.jsonl"),
    "replay": ("replay nosuch.jsonl", "nosuch.jsonl"),
    "help": ("help save", "%mmsp save FILE"),
}
"""For each subcommand, how it is typed after one question, and a part of what is said."""

REFUSED_COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("ask", "%mmsp ask needs a prompt"),
    "approve": ("approve tide", "there is nothing to approve"),
    "deny": ("deny", "there is nothing to deny"),
    "model": ("model demo openai-caht", "did you mean 'openai-chat'?"),
    "tools": ("tools ad tide", "write add or remove; did you mean 'add'?"),
    "mcp": ("mcp ad x", "did you mean 'add'?"),
    "retry": ("retry now", "%mmsp retry takes options only, not 'now'"),
    "rerun": ("rerun stlae", "did you mean 'stale'?"),
    "apply": ("apply", "there is nothing to apply"),
    "traces": ("traces nosuch", "nosuch"),
    "undo": ("undo again", "%mmsp undo cannot use 'again'"),
    "fork": ("fork main", "there is a chat 'main' already"),
    "branch": ("branch mian", "did you mean 'main'?"),
    "keep": ("keep", "this chat has compared nothing yet"),
    "stop": ("stop mian", "did you mean 'main'?"),
    "new": ("new main", "there is a chat 'main' already"),
    "use": ("use mian", "did you mean 'main'?"),
    "save": ("save", "%mmsp save needs the name of a file: %mmsp save talk.jsonl"),
    "load": ("load ketp.jsonl", "did you mean 'kept.jsonl'?"),
    "export": ("export talk.doc", "'talk.doc' by its ending: give a format (markdown, html, notebook, python)"),
    "record": ("record tape.jsonl oncee", "once"),
    "replay": ("replay nosuch.jsonl", "nosuch.jsonl"),
    "help": ("help svae", "did you mean 'save'?"),
    "why": ("why", "no cell has failed"),
    "continue": ("continue", "there is nothing to continue"),
    "redo": ("redo", "there is nothing to redo"),
    "cells": ("cells a b", "%mmsp cells cannot use 'b'"),
    "models": ("models a b c d e f g h i j", "%mmsp models cannot use 'j'"),
    **{
        name: (f"{name} surplus", f"%mmsp {name} cannot use 'surplus'")
        for name in ("status", "history", "usage", "browse", "reset", "chats")
    },
}
"""For each subcommand, how it can be mistyped, and a part of the line that is said."""

COMPLETED_COMMANDS: dict[str, str] = {
    "ask --": "--temperature", "retry --": "--model", "model ": "demo", "model demo ": "openai-chat", "models ": "demo",
    "tools ": "add", "tools add ": "tide", "tools remove ": "tide", "mcp ": "add", "rerun ": "stale",
    "rerun stale ": "--dry-run", "branch ": "main", "use ": "main", "stop ": "main", "save ": "notes.md",
    "load ": "kept.jsonl", "export ": "data/", "record ": "kept.jsonl", "record x.jsonl ": "once", "replay ": "off",
    "traces ": "old-trace", "help ": "save", "help --": "--model",
}  # fmt: skip


@pytest.fixture
def ready(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> Shell:
    """A folder with files, a tool, variables of all kinds, and a first execution."""

    def tide() -> str:
        """Tide"""
        return "high"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path / "traces"))
    (tmp_path / "notes.md").write_text("some notes")
    (tmp_path / "data").mkdir()
    tools.registry.add(tide)
    magics: Any = shell.magics_manager.registry["MMSPMagics"]
    shell.user_ns |= {
        "magics": magics, "chat": magics.chats.find, "tone": "kind", "dot": PIXEL, "tide": tide,
        "Invoice": type("Invoice", (), {"__annotations__": {"total": float}}),
        "mine": scripted.Scripted([scripted.text("mine")]),
        "typed": scripted.Scripted([scripted.text('{"result": 42}')], [scripted.text("42")]),
        "editor": scripted.Scripted([scripted.text("```python\nx = 2\n```")]),
        "kinds": lambda: [item["type"] for item in shell.user_ns["_mmsp"].messages[0]["content_items"]],
    }  # fmt: skip
    shell.run_cell("x = 1", store_history=True)
    return shell


def one_line(written: str) -> str:
    assert written.startswith(("UsageError: ", "UnsupportedParameterError: ")), written
    assert written.count("\n") == 1, written
    assert "Traceback" not in written
    return written


def test_no_option_and_no_subcommand_lacks_a_case() -> None:
    assert set(WORKS) == set(REFUSED) == set(OPTIONS)
    assert set(COMMANDS) == set(REFUSED_COMMANDS) == set(SUBCOMMANDS)
    valued = {name for name, option in OPTIONS.items() if option.read is not None}
    guessed = {"--system", "--max-tokens", "--temperature", "--top-p", "--seed", "--stop", "--max-turns", "--max-calls",
               "--budget", "--max-cost"}  # fmt: skip
    assert set(COMPLETED) == valued - guessed
    assert set(SHORT.values()) <= set(OPTIONS)


@pytest.mark.parametrize("name", WORKS)
def test_an_option_does_what_it_says(ready: Shell, capsys: Capsys, name: str) -> None:
    line, truth = WORKS[name]
    written = run(ready, f"%%mmsp {line}\nhello", capsys)
    ready.user_ns["written"] = written
    assert eval(truth, ready.user_ns), written
    assert "Error" not in written


@pytest.mark.parametrize("name", WORKS)
def test_an_option_works_in_a_line_too(ready: Shell, capsys: Capsys, name: str) -> None:
    line, truth = WORKS[name]
    written = run(ready, f"%mmsp ask {line} hello", capsys)
    ready.user_ns["written"] = written
    assert eval(truth, ready.user_ns), written


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistyped_option_is_one_line(ready: Shell, capsys: Capsys, name: str) -> None:
    line, message = REFUSED[name]
    assert message in one_line(run(ready, f"%%mmsp {line}\nhello", capsys))
    assert "_mmsp" not in ready.user_ns


@pytest.mark.parametrize("name", COMMANDS)
def test_a_subcommand_does_what_it_says(ready: Shell, capsys: Capsys, name: str) -> None:
    line, message = COMMANDS[name]
    run(ready, "%%mmsp --quiet\nhello", capsys)
    run(ready, "%mmsp save kept.jsonl", capsys)
    try:
        assert message in run(ready, f"%mmsp {line}", capsys)
    finally:
        run(ready, "%mmsp record off", capsys)


@pytest.mark.parametrize("name", REFUSED_COMMANDS)
def test_a_mistyped_subcommand_is_one_line(ready: Shell, capsys: Capsys, name: str) -> None:
    line, message = REFUSED_COMMANDS[name]
    run(ready, "%%mmsp --quiet\nhello", capsys)
    run(ready, "%mmsp save kept.jsonl", capsys)
    assert message in one_line(run(ready, f"%mmsp {line}", capsys))


def complete(shell: Shell, line: str, *, in_cell: bool = False) -> list[str]:
    return candidates(line, in_cell, shell.user_ns, shell.user_ns["magics"])


def inserted(shell: Shell, line: str) -> list[str]:
    """What a front end would put into the line."""
    context = SimpleNamespace(full_text=line, cursor_line=0, cursor_position=len(line))
    return [each.text for each in matcher(shell, shell.user_ns["magics"])(context)["completions"]]


@pytest.fixture
def begun(ready: Shell, tmp_path: Path, capsys: Capsys) -> Shell:
    """A chat, a saved one, a trace."""
    run(ready, "%config MMSPMagics.model = 'demo:configured'", capsys)
    run(ready, "%%mmsp --quiet\nhello", capsys)
    run(ready, "%mmsp save kept.jsonl", capsys)
    (tmp_path / "traces").mkdir(exist_ok=True)
    trace = {"config": {"model": "demo"}, "messages": []}
    (tmp_path / "traces" / "old-trace.json").write_text(json.dumps(trace))
    return ready


@pytest.mark.parametrize("name", COMPLETED)
def test_the_values_of_an_option_are_offered(begun: Shell, name: str) -> None:
    for line in (f"%%mmsp {name} ", f"%mmsp ask -q {name} ", f"%%mmsp {name}=", f"a = %mmsp ask {name} "):
        assert COMPLETED[name] in complete(begun, line), line


def test_options_and_subcommands_are_offered(begun: Shell) -> None:
    assert complete(begun, "%%mmsp --") == complete(begun, "%mmsp ask -m demo --") == list(OPTIONS)
    assert complete(begun, "%%mmsp ") == list(OPTIONS)
    assert complete(begun, "%mmsp ") == list(SUBCOMMANDS)
    assert "--help" in complete(begun, "%mmsp -")
    assert complete(begun, "%mmsp ask what is ") == []
    assert complete(begun, "print(") == []


@pytest.mark.parametrize("line", COMPLETED_COMMANDS)
def test_the_words_of_a_subcommand_are_offered(begun: Shell, line: str) -> None:
    assert COMPLETED_COMMANDS[line] in complete(begun, f"%mmsp {line}")


def test_configured_models_and_those_in_use_come_first(begun: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-for-tests")
    offered = complete(begun, "%%mmsp -m ")
    assert offered[:3] == ["demo:configured", "demo", "local"]
    assert offered[3].startswith("claude-")
    assert len(offered) == len(set(offered))


def test_variables_are_offered_anywhere_in_an_expression(begun: Shell) -> None:
    for line in ("look at {{", "{{to", "{{len(to", "{{ {'a': to", "{{a}} and {{"):
        assert "tone" in complete(begun, line, in_cell=True), line
    assert {"cell", "Err"} <= set(complete(begun, "{{", in_cell=True))
    assert "tone" in complete(begun, "%mmsp ask what is {{")
    assert "tone" in complete(begun, "%%mmsp --system {{")
    for line in ("\\{{to", "{{tone}} to", "tone"):
        assert complete(begun, line, in_cell=True) == [], line


def test_cells_are_offered_in_cell_and_edit(begun: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"cell_type": "code", "id": "bb22", "source": "", "outputs": [], "metadata": {"tags": ["setup"]}}
    (tmp_path / "talk.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "talk.ipynb"))
    assert complete(begun, '{{cell("', in_cell=True) == ["setup", "bb22"]
    assert {"In[1]", "setup", "bb22"} <= set(complete(begun, "%%mmsp --edit "))


def test_what_waits_is_offered(begun: Shell, capsys: Capsys) -> None:
    run(begun, "%%mmsp --client editor --edit In[1]\nmore", capsys)
    assert complete(begun, "%mmsp apply ") == ["In[1]"]
    use(begun, [scripted.call("tide")], tools=["tide"])
    run(begun, "%%mmsp --compare mine\nhi", capsys)
    assert complete(begun, "%mmsp keep ") == ["mine"]


def test_the_shell_offers_them_in_this_order(begun: Shell) -> None:
    def offered(text: str) -> list[str]:
        begun.Completer.use_jedi = False
        found = [each.text for each in begun.Completer.completions(text, len(text))]
        return [each for each in found if each]

    assert offered("%%mmsp -m demo")[:2] == ["demo:configured", "demo"]
    assert "setdefault" not in offered("%mmsp se")
    assert "tone" in offered("%%mmsp\nlook at {{to")


# help


@pytest.mark.parametrize("cell", [True, False])
def test_the_example_of_a_help_page_runs_when_pasted(ready: Shell, capsys: Capsys, cell: bool) -> None:
    example = page(ready.user_ns["magics"], cell=cell).split("An example:\n\n")[1].split("\n\n")[0]
    assert example.startswith("%%mmsp") is cell
    run(ready, example, capsys)
    assert ready.user_ns["answer"].complete


def test_each_form_shows_its_own_page(ready: Shell, capsys: Capsys) -> None:
    cell, line = (page(ready.user_ns["magics"], cell=each) for each in (True, False))
    assert cell.startswith("%%mmsp [options]")
    assert line.startswith("%mmsp SUBCOMMAND")
    for code in ("%%mmsp --help", "%%mmsp -h\nhi", "%%mmsp -m demo --help", "%mmsp ask --help"):
        expected = line if code.startswith("%mmsp") else cell
        assert run(ready, code, capsys) == f"{expected}\n", code
    for code in ("%mmsp --help", "%mmsp -h"):
        assert run(ready, code, capsys) == f"{line}\n", code
    assert cell.splitlines()[0] in run(ready, "%%mmsp?", capsys)
    assert "What holds now:" in run(ready, "%mmsp?", capsys)


def test_a_name_with_spaces_is_quoted_and_completed_with_quotes(
    ready: Shell, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(ready, "%%mmsp --chat 'my talk' -m demo\nhi", capsys)
    run(ready, "%mmsp new other", capsys)
    for line in ("%mmsp use my", "%%mmsp --chat m"):
        assert "'my talk'" in inserted(ready, line)
    assert "my talk" in inserted(ready, "%%mmsp --chat '")
    assert run(ready, "%mmsp use 'my talk'", capsys).startswith("chat my talk with demo, 1 turn")
    saved = run(ready, '%mmsp save "a b.jsonl"  # kept', capsys)
    assert saved.startswith("saved a b.jsonl: 1 turn") and "%mmsp load 'a b.jsonl' goes on with it" in saved
    assert (tmp_path / "a b.jsonl").is_file()
    assert "'a b.jsonl'" in inserted(ready, "%mmsp load a")
    assert "there is no chat" in run(ready, "%mmsp use it's", capsys)


def test_a_page_has_what_holds_now(ready: Shell, capsys: Capsys) -> None:
    run(ready, "%config MMSPMagics.max_turns = 7", capsys)
    run(ready, "%mmsp model demo:fast", capsys)
    written = run(ready, "%%mmsp --help", capsys)
    assert "--max-turns    N: requests that this cell may make (now 7)" in written
    assert "in this chat (now demo:fast)" in written
    for each in (written, run(ready, "%mmsp --help", capsys)):
        assert all(f"  {option}" in each for option in ("--model, -m", "--out, -o", "--quiet, -q", "--new, -n"))


@pytest.mark.parametrize("name", [*SUBCOMMANDS, *OPTIONS, *SHORT])
def test_every_name_has_a_line_of_help(ready: Shell, capsys: Capsys, name: str) -> None:
    about = SUBCOMMANDS.get(name) or OPTIONS[SHORT.get(name, name)].about
    assert about in run(ready, f"%mmsp help {name}", capsys)
    if name in SUBCOMMANDS and name not in ("ask", "help"):
        assert about in run(ready, f"%mmsp {name} --help", capsys)
