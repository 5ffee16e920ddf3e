"""Pictures, files, expressions in options, formats, dry runs; exceptions in prompts and explained."""

# ruff: noqa: F811

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import scripted
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, said, shell, use  # noqa: F401 - fixtures are found by name

from mmsp_nb.blocks import code_blocks, parse_json
from mmsp_nb.notebook.formats import shaped_html
from mmsp_nb.notebook.options import OPTIONS, SUBCOMMANDS, spelled

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]


def kinds(client: scripted.Scripted) -> list[str]:
    return [item["type"] for item in client.requests[-1]["content_items"]]


def test_pictures_come_from_variables_files_and_addresses(shell: Shell, capsys: Capsys, tmp_path: Path) -> None:
    client = use(shell, [scripted.text("seen")])
    (tmp_path / "dot.png").write_bytes(PIXEL)
    shell.user_ns |= {"dot": PIXEL, "dots": [PIXEL]}
    line = f"%%mmsp --image dot --image {tmp_path}/dot.png --image https://example.com/a.png --image {{{{dots[0]}}}}"
    run(shell, f"{line}\nlook", capsys)
    assert kinds(client) == ["text.done", *["image_url.done"] * 4]
    urls = [item["image_url"] for item in client.requests[0]["content_items"][1:]]
    assert urls[2] == "https://example.com/a.png"
    assert len({urls[0], urls[1], urls[3]}) == 1


def test_files_are_sent_as_labelled_bounded_text(shell: Shell, capsys: Capsys, tmp_path: Path) -> None:
    client = use(shell, [scripted.text("read")])
    (tmp_path / "notes.md").write_text("a ``` in it, {{1+1}}\n")
    (tmp_path / "long.txt").write_text("x" * 100_010)
    run(shell, f"%%mmsp --file {tmp_path}/notes.md --file '{tmp_path}/long.txt'\nsum up", capsys)
    text = said(client)
    assert text.startswith("sum up\n\nnotes.md:\n````\na ``` in it, {{1+1}}\n````\n\nlong.txt:\n```\nxxx")
    assert text.endswith("x\n[... 10 more characters]\n```")


def test_expressions_stand_in_options_too(shell: Shell, capsys: Capsys) -> None:
    client = use(shell, [scripted.text("a")])
    shell.user_ns |= {"t": 0.25, "ends": "END", "name": "reply"}
    run(shell, "%%mmsp --temperature {{t * 2}} --stop {{ends}} --stop x --seed {{7}} --out {{name}}\nhi", capsys)
    assert client.configs[0] == {"temperature": 0.5, "stop": ["END", "x"], "seed": 7}
    assert shell.user_ns["reply"].text == "a"


def test_sampling_options_and_traces_reach_the_request(
    shell: Shell, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = use(shell, [scripted.text("a")])
    run(shell, "%%mmsp --top-p 0.9 --seed -1 --trace tides\nhi", capsys)
    assert client.configs[0] == {"top_p": 0.9, "seed": -1, "trace_id": "tides"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--image dto", "--image dto: there is no such variable or file; did you mean 'dot'?"),
        ("--image number", "--image number: "),
        ("--file nothing.txt", "--file nothing.txt: there is no such file"),
        ("--file .", "--file . is a folder"),
        ("--file ''", "--file needs some text, not ''"),
        ("--file {{''}}", "--file needs some text, not ''"),
        ("--file /dev/zero", "--file /dev/zero is a device or a pipe, not a file"),
        ("--file pipe", "--file pipe is a device or a pipe, not a file"),
        ("--file https://example.com/x", "--file takes the path of a file on this machine, not an address"),
        ("--image .", "--image . is a folder"),
        ("--image /dev/zero", "--image /dev/zero is a device or a pipe, not a file"),
        ("--image ''", "--image needs some text, not ''"),
        ("--edit ''", "--edit needs some text, not ''"),
        ("--type int --format code", "--type and --format code do not go together"),
        ("--file dot.png", "--file dot.png is no text in UTF-8; pictures go with --image"),
        ("--file dto.png", "did you mean 'dot.png'?"),
        ("--temperature {{'hot'}}", "--temperature needs a number from 0 on, not 'hot'"),
        ("--temperature {{nothing}}", "{{nothing}}: NameError"),
        ("--system {{dot_picture}}", "NameError"),
        ("--top-p 2", "--top-p needs a number from 0 to 1, not '2'"),
        ("--seed x", "--seed needs a whole number, not 'x'"),
        ("--format htlm", "not 'htlm'; did you mean 'html'?"),
        ("--compare a,a", "--compare names one of them twice"),
        ("--compare a --background", "--compare and --background do not go together"),
    ],
)
def test_a_wrong_value_is_one_line(
    shell: Shell, capsys: Capsys, line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dot.png").write_bytes(PIXEL)
    os.mkfifo(tmp_path / "pipe")
    client = use(shell)
    shell.user_ns |= {"dot": PIXEL, "number": 3}
    written = run(shell, f"%%mmsp {line}\nhi", capsys)
    assert written.startswith("UsageError: ")
    assert written.count("\n") == 1
    assert message in written
    assert client.requests == []


def test_a_dry_run_shows_the_body_and_no_key(shell: Shell, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234567890abcdefgh")
    shell.user_ns["dot"] = PIXEL
    written = run(shell, "%%mmsp -m gpt-5.5 --max-tokens 100 --image dot --dry-run\nhi {{1+1}}", capsys)
    assert "POST https://api.openai.com/v1/responses" in written
    body = json.loads(written[written.index("{\n") : written.index("\nprompt:")])
    assert body["model"] == "gpt-5.5"
    assert body["max_output_tokens"] == 100
    assert "hi 2" in json.dumps(body["input"])
    assert "tokens: about 1,0" in written
    assert "price: about $0.00" in written
    assert "for the answer" in written
    assert "sk-test" not in written
    assert "_mmsp" not in shell.user_ns
    assert "price: unknown" in run(shell, "%%mmsp -m demo --dry-run\nhi", capsys)


def test_a_dry_run_says_whether_the_limits_of_cost_would_let_it_go(
    shell: Shell, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234567890abcdefgh")
    within = run(shell, "%%mmsp -m gpt-5.5 --dry-run --budget 5\nhi", capsys)
    assert "\nbudget: within the limits, so this request would be sent\n" in within
    above = run(shell, "%%mmsp -m gpt-5.5 --dry-run --budget 0.0000001\nhi", capsys)
    assert "\nbudget: would not be sent: a question may cost " in above
    assert "budget:" not in run(shell, "%%mmsp -m gpt-5.5 --dry-run\nhi", capsys)
    assert "budget:" not in run(shell, "%%mmsp -m demo --dry-run --budget 1\nhi", capsys)
    run(shell, "%%mmsp -m demo\nhi", capsys)
    run(shell, "%config MMSPMagics.budget = 0.0", capsys)
    spent = run(shell, "%%mmsp -m gpt-5.5 --dry-run\nhi", capsys)
    assert "\nbudget: would not be sent: this conversation has cost " in spent
    both = run(shell, "%%mmsp --compare gpt-5.5,demo --dry-run --budget 0.0000001\nhi", capsys)
    assert "a question may cost" in both


def test_an_answer_of_a_type_that_is_asked_again_is_no_code_either(shell: Shell, capsys: Capsys) -> None:
    client = use(shell, [scripted.text("7")])
    run(shell, "%%mmsp --type int\nhow many", capsys)
    written = run(shell, "%mmsp retry --format code", capsys)
    assert "--type and --format code do not go together" in written
    assert len(client.requests) == 1


def test_exceptions_stand_in_prompts_by_their_execution(shell: Shell, capsys: Capsys) -> None:
    client = use(shell, [scripted.text("a")])
    shell.run_cell("rows = {'{a}': 1}\nrows['{{b}}']", store_history=True)
    count = shell.execution_count - 1
    run(shell, f"%%mmsp\nwhat is {{{{Err[{count}]}}}}", capsys)
    assert "KeyError: '{{b}}'" in said(client)
    assert "no exception of execution 99 is kept" in run(shell, "%%mmsp\n{{Err[99]}}", capsys)


CODE = """
def inner(rows, key):
    secret = 'sk-proj-' + 'a1b2c3d4' * 4
    return rows['{' + key + '}']

def outer(n):
    rows = [n] * 3
    table = {'a': 1}
    return inner(table, '{x}')

outer(5)
"""


def test_why_sends_the_cell_its_frames_and_shapes(shell: Shell, capsys: Capsys) -> None:
    assert "no cell has failed" in run(shell, "%mmsp why", capsys)
    client = use(shell, [scripted.text("Because.")], [scripted.text("Still.")])
    run(shell, CODE, capsys)
    assert "Because." in run(shell, "%mmsp why", capsys)
    sent = said(client)
    assert "Why did this fail" in sent
    assert "KeyError: '{{x}}'" in sent
    assert "def outer(n):" in sent
    assert "the cell, line 3, in inner" in sent
    assert "rows: dict with 1 keys" in sent
    assert "key: str of length 3" in sent
    assert "a1b2c3d4a1b2" not in sent
    run(shell, "%mmsp why is {x} missing?", capsys)
    assert said(client).startswith("is {x} missing?\n\n")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = (", "SyntaxError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise ValueError('{{not an expression}} {')", "ValueError: {{not an expression}} {"),
        ("try:\n    1/0\nexcept Exception as e:\n    raise OSError('b') from e", "Its cause:"),
        ("try:\n    1/0\nexcept Exception:\n    raise OSError('b')", "It was raised while this was handled"),
        ("raise ExceptionGroup('many', [ValueError('a'), KeyError('b')])", "- KeyError: 'b'"),
        ("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E", "E: <exception str() failed>"),
        ("import json; json.loads('{')", "raised in decoder.py"),
        ("exec('1/0')", "ZeroDivisionError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("raise ValueError('x' * 100_000)", "more characters)"),
    ],
)
def test_why_knows_every_kind_of_error(shell: Shell, capsys: Capsys, code: str, expected: str) -> None:
    client = use(shell, [scripted.text("ok")])
    run(shell, code, capsys)
    run(shell, "%mmsp why", capsys)
    assert expected in said(client)
    assert len(said(client)) < 20_000


def test_why_shows_no_frames_of_who_read_a_cell_that_is_no_python(shell: Shell, capsys: Capsys) -> None:
    client = use(shell, [scripted.text("ok")])
    run(shell, "def f(:\n    pass", capsys)
    run(shell, "%mmsp why", capsys)
    assert "line 1\n    def f(:\n          ^\nSyntaxError: " in said(client)
    assert "interactiveshell" not in said(client)
    assert "compilerop" not in said(client)


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)><iframe srcdoc='x'>"


@pytest.mark.parametrize("form", ["text", "raw", "json", "code", "math", "html"])
def test_no_format_lets_html_of_a_model_act(form: str) -> None:
    shown = shaped_html(HOSTILE, form)
    if form == "html":
        assert shown.startswith('<iframe sandbox=""')
        assert shown.count("<") == 2, "all of it is in the frame's attribute"
        assert "default-src &#x27;none&#x27;" in shown
    else:
        for tag in ("<script", "<img", "<iframe"):
            assert tag not in shown


def test_formats_show_what_they_say() -> None:
    assert "&quot;a&quot;" in shaped_html('```json\n{"a":[1,2]}\n```', "json") or '"a"' in shaped_html(
        '{"a":[1,2]}', "json"
    )
    assert "the answer is not JSON" in shaped_html("{a", "json")
    assert "$$" in shaped_html(r"\frac{1}{2}", "math")
    assert "<strong>" not in shaped_html("**b**", "text")


def test_an_answer_has_code_and_json(shell: Shell, capsys: Capsys) -> None:
    use(shell, [scripted.text('It is\n```json\n{"a": 1}\n```\n')])
    run(shell, "%%mmsp --format json\nhi", capsys)
    answer = shell.user_ns["_mmsp"]
    assert [(block.language, str(block)) for block in answer.code] == [("json", '{"a": 1}')]
    assert answer.json() == {"a": 1}


def test_blocks_and_json_of_odd_texts() -> None:
    assert code_blocks("a ``` b") == []
    assert [block.code for block in code_blocks("  ```\n    x\n  ```")] == ["  x"]
    assert [block.complete for block in code_blocks("```\nx")] == [False]
    assert parse_json(" [1]\n") == [1]
    for text, message in (("", "is empty"), ("{", "is not JSON: .* in line 1, column 2")):
        with pytest.raises(ValueError, match=message):
            parse_json(text)


def test_help_lists_everything(shell: Shell, capsys: Capsys) -> None:
    written = run(shell, "%mmsp help", capsys)
    for name in [*OPTIONS, *SUBCOMMANDS]:
        assert f"  {spelled(name)} " in written
    assert "  --model, -m " in written
    magics: Any = shell.magics_manager.registry["MMSPMagics"]
    special = {"ask", "continue", "approve", "deny", "rerun", "retry", "why"}
    assert {name for name in SUBCOMMANDS if not hasattr(magics.commands, f"do_{name}")} == special
