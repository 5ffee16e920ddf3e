# ruff: noqa: F811
"""Settings out of the environment and pyproject.toml; `%mmsp?`; completion of what is newer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb.notebook import settings
from mmsp_nb.notebook.completion import candidates

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]
NAMES = ("model", "client_type", "system", "max_turns", "live")


def write(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.mmsp_nb]\n{text}\n")


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    write(tmp_path, 'model = "a"\nsystem = "file"\nmax_turns = 3')
    (tmp_path / "deep" / "er").mkdir(parents=True)
    found, faults = settings.find(NAMES, {"MMSP_NB_SYSTEM": "env"}, tmp_path / "deep" / "er")
    path = str(tmp_path / "pyproject.toml")
    assert found == {"model": ("a", path), "system": ("env", "MMSP_NB_SYSTEM"), "max_turns": (3, path)}
    assert faults == []
    assert "model" not in settings.find(NAMES, {"MMSP_MODEL": "demo"}, tmp_path)[0]


def test_what_a_file_must_not_or_cannot_say_is_told(tmp_path: Path) -> None:
    write(tmp_path, 'modle = "x"\nbase_url = "https://elsewhere"')
    found, faults = settings.find(NAMES, {}, tmp_path)
    assert found == {}
    assert "knows no modle; did you mean 'model'?" in faults[0]
    assert "knows no base_url" in faults[1]
    (tmp_path / "pyproject.toml").write_text("[tool")
    assert "cannot be read" in settings.find(NAMES, {}, tmp_path)[1][0]


def test_settings_of_a_folder_hold_until_something_nearer_says_otherwise(
    shell: Shell, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MMSP_MODEL")
    write(tmp_path, 'model = "demo:fast"\nsystem = "Be brief."\nmax_turns = 0')
    said = run(shell, "%reload_ext mmsp_nb", capsys)
    assert f"demo:fast (from {tmp_path / 'pyproject.toml'})" in said
    assert "max_turns = 0 cannot be used" in said
    assert "system_prompt: Be brief." in run(shell, "%%mmsp --dry-run\nhi", capsys)
    assert "system_prompt: Be long." in run(shell, "%%mmsp --system 'Be long.' --dry-run\nhi", capsys)
    run(shell, "%config MMSPMagics.model = 'demo'", capsys)
    assert "MMSPMagics.model is set" in shell.magics_manager.registry["MMSPMagics"].greeting()
    shell.config.MMSPMagics.model = "demo:slow"
    try:
        assert "mmsp: demo:slow (MMSPMagics.model is set)" in run(shell, "%reload_ext mmsp_nb", capsys)
    finally:
        del shell.config["MMSPMagics"]


@pytest.mark.parametrize("code", ["%mmsp?", "%%mmsp?"])
def test_the_help_page_has_the_live_settings(shell: Shell, capsys: Capsys, code: str) -> None:
    run(shell, "%config MMSPMagics.max_turns = 7", capsys)
    written = run(shell, code, capsys)
    assert "max_turns     7" in written
    assert "--background" in written
    assert "keep       NAME" in written


def test_the_example_of_the_help_page_runs_when_pasted(shell: Shell, capsys: Capsys) -> None:
    from mmsp_nb.notebook.page import page

    text = page(shell.magics_manager.registry["MMSPMagics"])
    example = text.split("An example:\n\n")[1].split("\n\n")[0]
    run(shell, example, capsys)
    assert shell.user_ns["answer"].complete


def test_completion_knows_values_of_the_newer_options(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "data").mkdir()
    use(shell, [scripted.text("a")], [scripted.text("b")])
    shell.user_ns["mine"] = scripted.Scripted()
    magics: Any = shell.magics_manager.registry["MMSPMagics"]

    def complete(line: str) -> list[str]:
        return candidates(line, False, shell.user_ns, magics)

    assert complete("%%mmsp --client ") == ["mine"]
    assert "openai-chat" in complete("%%mmsp --client-type o")
    assert "html" in complete("%%mmsp --format h")
    assert {"data/", "notes.md"} <= set(complete("%%mmsp --file n"))
    assert {"mine", "notes.md"} <= set(complete("%%mmsp --image "))
    assert {"mine", "demo"} <= set(complete("%%mmsp --compare mine,d"))
    assert "notes.md" in complete("%mmsp load ")
    assert complete("%mmsp branch ") == ["main"]
    assert complete("%mmsp keep ") == []
    assert "chat" in complete("%mmsp stop ")
    assert "--background" in complete("%%mmsp --b")
    assert {"why", "retry", "fork"} <= set(complete("%mmsp "))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("model = 'nosuch'", "needs a client type first: %config MMSPMagics.client_type = 'openai-chat'"),
        ("model = 'gpt-5.5'", "OPENAI_API_KEY"),
        ("client_type = 'openai-caht'", "there is no client type 'openai-caht'; did you mean 'openai-chat'?"),
        ("max_turns = 0", "max_turns"),
        ("budget = -1", "budget"),
        ("budget = 'much'", "budget"),
        ("kernel_budget = []", "kernel_budget"),
    ],
)
def test_a_setting_that_is_refused_stays_as_it_was_also_after_a_reload(
    shell: Shell, capsys: Capsys, caplog: pytest.LogCaptureFixture, line: str, message: str
) -> None:
    name = line.split()[0]
    magics: Any = shell.magics_manager.registry["MMSPMagics"]
    before = getattr(magics, name)
    written = run(shell, f"%config MMSPMagics.{line}", capsys)
    assert message in written + caplog.text
    assert getattr(magics, name) == before
    written = run(shell, "%reload_ext mmsp_nb", capsys)
    assert "Traceback" not in written
    assert written.startswith("mmsp: demo (MMSP_MODEL is set).")
    assert getattr(shell.magics_manager.registry["MMSPMagics"], name) == before
    run(shell, f"%config MMSPMagics.max_turns = 9\n%config MMSPMagics.{line}", capsys)
    assert shell.magics_manager.registry["MMSPMagics"].max_turns == 9


def test_a_refused_model_leaves_the_chat_alone(shell: Shell, capsys: Capsys) -> None:
    run(shell, "%%mmsp\nhello", capsys)
    run(shell, "%config MMSPMagics.model = 'nosuch'", capsys)
    assert "demo" in run(shell, "%mmsp model", capsys)
    assert "Hello" in run(shell, "%%mmsp\nhello", capsys)


def test_budgets_come_from_the_environment_and_the_file(
    shell: Shell, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mmsp_nb import spending

    monkeypatch.chdir(tmp_path)
    write(tmp_path, "budget = 0.5\nkernel_budget = 3")
    monkeypatch.setenv("MMSP_NB_BUDGET", "$1.50")
    try:
        run(shell, "%reload_ext mmsp_nb", capsys)
        magics: Any = shell.magics_manager.registry["MMSPMagics"]
        assert (magics.budget, magics.kernel_budget, spending.budget) == (1.5, 3.0, 3)
        monkeypatch.setenv("MMSP_NB_BUDGET", "much")
        assert "MMSP_NB_BUDGET: budget = 'much' cannot be used" in run(shell, "%reload_ext mmsp_nb", capsys)
    finally:
        spending.budget = None


def test_every_number_can_come_from_the_environment(
    shell: Shell, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMSP_NB_MAX_TURNS", "3")
    assert "cannot be used" not in run(shell, "%reload_ext mmsp_nb", capsys)
    assert shell.magics_manager.registry["MMSPMagics"].max_turns == 3
    monkeypatch.setenv("MMSP_NB_MAX_TURNS", "three")
    monkeypatch.setenv("MMSP_NB_KERNEL_BUDGET", "a lot")
    written = run(shell, "%reload_ext mmsp_nb", capsys)
    assert "MMSP_NB_MAX_TURNS: max_turns = 'three' cannot be used: it is no whole number" in written
    assert "MMSP_NB_KERNEL_BUDGET: kernel_budget = 'a lot' cannot be used: it is no number" in written


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_turns": "0"}, "MMSPMagics.max_turns = 0 cannot be used"),
        ({"max_turns": "many"}, "MMSPMagics.max_turns = many cannot be used"),
        ({"budget": "-1"}, "MMSPMagics.budget = -1 cannot be used"),
        ({"live": "perhaps"}, "MMSPMagics.live = perhaps cannot be used"),
    ],
)
def test_what_a_command_line_says_wrongly_is_a_line_and_the_rest_holds(
    shell: Shell, capsys: Capsys, given: dict[str, str], message: str
) -> None:
    from traitlets.config.loader import DeferredConfigString

    for name, value in {"model": "demo:fast", **given}.items():
        shell.config.MMSPMagics[name] = DeferredConfigString(value)
    try:
        written = run(shell, "%reload_ext mmsp_nb", capsys)
        assert written.startswith("mmsp: demo:fast (MMSPMagics.model is set).")
        assert message in written and "Traceback" not in written
        assert shell.magics_manager.registry["MMSPMagics"].max_turns == 10
    finally:
        del shell.config["MMSPMagics"]


def test_a_model_that_nobody_knows_is_said_when_the_extension_is_loaded(
    shell: Shell, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMSP_NB_MODEL", "clod")
    assert "clod cannot be used: no vendor is known for model 'clod'" in run(shell, "%reload_ext mmsp_nb", capsys)
    monkeypatch.setenv("MMSP_NB_MODEL", "claude-opus-5-5")
    written = run(shell, "%reload_ext mmsp_nb", capsys)
    assert "cannot be used" not in written, "a key that is not there yet is said when something is asked"
    monkeypatch.setenv("MMSP_NB_CLIENT_TYPE", "anthropicc")
    assert "claude-opus-5-5 cannot be used" in run(shell, "%reload_ext mmsp_nb", capsys)


@pytest.mark.parametrize("how", ["%reload_ext mmsp_nb", "%unload_ext mmsp_nb\n%load_ext mmsp_nb"])
def test_chats_survive_that_the_extension_is_loaded_again(shell: Shell, capsys: Capsys, how: str) -> None:
    run(shell, "%mmsp ask My name is Ann", capsys)
    run(shell, "%mmsp new other\n%mmsp ask --format code Write Python code that prints hello", capsys)
    shell.run_cell("1 / 0")
    assert "chat other with demo goes on: %mmsp status" in run(shell, how, capsys)
    written = run(shell, "%mmsp chats", capsys)
    assert "  main  demo, 1 turn" in written and "* other  demo, 1 turn" in written
    run(shell, "%mmsp use main\n%mmsp ask --out told What is my name?", capsys)
    assert "Ann" in shell.user_ns["told"].text
    assert "is in the next cell" in run(shell, "%mmsp apply", capsys)
    assert "division by zero" in run(shell, "%mmsp ask --dry-run {{Err[-1]}}", capsys)


def test_a_chat_that_has_not_begun_takes_the_settings_of_the_next_load(
    shell: Shell, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(shell, "%mmsp new empty", capsys)
    monkeypatch.setenv("MMSP_MODEL", "demo:fast")
    assert "goes on" not in run(shell, "%reload_ext mmsp_nb", capsys)
    assert "model  demo:fast" in run(shell, "%mmsp status", capsys)
