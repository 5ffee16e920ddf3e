# ruff: noqa: F811
"""Prompts arrive byte for byte: a real shell at one end, the body of a real HTTP request at the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from test_magics import run, shell  # noqa: F401 - fixtures are found by name

from mmsp_nb import AutoLLMClient, Conversation
from mmsp_nb.testing import FakeProvider, streams

Shell = InteractiveShell
Capsys = pytest.CaptureFixture[str]

PYTHON = """def f(x: dict[str, int]) -> str:
\treturn f"{x['a']!r:>{10}} {{literal}} \\{x}"  # {not} $this
print(f"{f({'a': 1})}")"""
# an f-string's doubled braces would be an expression: they are written \\{{
PYTHON_SENT = PYTHON
PYTHON_TYPED = PYTHON.replace("{{", "\\{{")

VERBATIM = {
    "braces": "{x} {} {0} {x!r} {x:>10} }} } {",
    "dollars": "$x ${x} $(x) $$x$$ $HOME $1 `x`",
    "an f-string": 'print(f"{x} and {name!r}")',
    "LaTeX": r"\frac{a}{b} \\ $\sum_{i=0}^{n} x_{i}^{2}$ \begin{align} a &= b \\ c &= d \end{align} \[ x \] \( y \)",
    "JSON": '{"a": {"b": [1, 2, {"c": null}]}, "d": "x\\n\\"y\\"", "e": {}}',
    "Jinja's statements": "{% for x in xs %}{# comment #}{{'{{'}}{% endfor %}".replace("{{'{{'}}", "-"),
    "Rust": 'fn main() { let v: Vec<&\'static str> = vec!["a"]; println!("{:?} {}", v, 1); }',
    "C": '#include <stdio.h>\nint main(void) { printf("%d\\n", 1); return 0; }  /* } */',
    "JavaScript": "const f = (x) => { return `${x} ${name}`; }; // $x\nconst o = {a: {b: 1}};",
    "shell": "for f in *.txt; do echo \"${f%.txt}\" $1 $(date) | awk '{print $1}'; done\nexport A=b && !!",
    "SQL": "SELECT 'it''s', \"x\" FROM t WHERE a LIKE '%mmsp%' -- comment",
    "Perl": 'my %h = (a => 1); print "$h{a} @{[1]} $_\\n" if /\\d{2,3}$/;',
    "Go template": 'type T struct { A int `json:"a"` }\nfmt.Printf("%+v\\n", T{1})',
    "HTML": '<script>if (a < b && c) { alert("x") }</script> &amp; <!-- {x} -->',
    "YAML": "a: {b: [1, 2]}\n---\n- &x y\n- *x\n# comment",
    "a diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y",
    "backslashes": r"\ \\ \n \t \' \" \{ \} C:\new\table \u0041 \x41 \N{BULLET}",
    "trailing white space": "a  \nb\t\n  c \n",
    "leading white space": "\n\n   indented\n  less\n\tmore",
    "CRLF": "a\r\nb\r\n\r\nc",
    "lone CR": "a\rb\rc",
    "tabs": "\ta\tb\n\t\tc",
    "odd line ends": "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg",
    "unicode": "naïve 你好 😀 👩‍👩‍👧 e\u0301 \u00a0 \u200b \ufeff ‮rtl‬ Ω",
    "line magics": "%time x\n%%bash\n%mmsp ask no\n%load_ext a",
    "shell escapes": "!ls -l\n!!pwd\nx = !ls",
    "help": "?print\nprint?\nprint??\n*int*?\nwhat?",
    "quick calls": ",f a b\n;f a b\n/f a",
    "apostrophes": "it's what's 'quoted \"mixed' and \"open",
    "double spaces": "a  b   c    d",
    "comments": "a # b\n# c\n  # d #e",
    "prompts": ">>> x = 1\n... y\nIn [1]: z\n   ...: w",
    "escaped braces alone": "}}",
    "assignment": "x = 1\ny = {x}\ndel x",
    "await": "await f()\nasync with x: pass",
    "options": "--model x -m y\n-n",
    "control characters": "a\x01b\x1b[31mred\x1b[0m\x7f",
    "semicolon": "print(1);",
    "an ending backslash": "a\\",
    "XML entities": "&lt;{x}&gt; &#39;",
    "one long line": "x" * 50_000,
}

TYPED = {
    "escaped braces": ("\\{{x}} and \\{{ name }}", "{{x}} and {{ name }}"),
    "Python with doubled braces": (PYTHON_TYPED, PYTHON_SENT),
    "Jinja": ("{% if \\{{ user }} %}\\{{ user.name|e }}{% endif %}", "{% if {{ user }} %}{{ user.name|e }}{% endif %}"),
    "Mustache": ("\\{{#each}}\\{{{raw}}}\\{{/each}}", "{{#each}}{{{raw}}}{{/each}}"),
    "LaTeX with doubled braces": ("\\mathbf\\{{x}}", "\\mathbf{{x}}"),
    "a value is not expanded again": ("{{tricky}}", "{{x}} {x} $x \\{{x}}\r\n"),
    "an expression beside braces": ('{"a": {{x}}}', '{"a": 7}'),
    "a dict in an expression": ("{{ {'a': {'b': x}}['a']['b'] }}", "7"),
    "a format in an expression": ("{{f'{x:>3}'}}|", "  7|"),
}


@pytest.fixture
def provider(shell: Shell) -> Iterator[FakeProvider]:
    """The chat that cells talk to sends to this server."""
    with FakeProvider() as provider:
        provider.when("/chat/completions", lambda request: streams.reply("text", "chat"))
        client = AutoLLMClient("any-model", "a-key-for-tests", provider.url("/v1"), "openai-chat")
        shell.user_ns |= {"chat": Conversation(client=client), "x": 7, "name": "Ada", "user": "u"}
        shell.user_ns["tricky"] = "{{x}} {x} $x \\{{x}}\r\n"
        shell.run_line_magic("mmsp", "use chat")
        yield provider


def arrived(provider: FakeProvider) -> str:
    """The text of the last user message that the server got."""
    message: dict[str, Any] = provider.requests[-1].body["messages"][-1]
    assert message["role"] == "user"
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize("prompt", VERBATIM.values(), ids=VERBATIM)
def test_a_cell_arrives_as_it_was_typed(shell: Shell, provider: FakeProvider, capsys: Capsys, prompt: str) -> None:
    written = run(shell, f"%%mmsp\n{prompt}\n", capsys)
    assert provider.requests, written
    assert arrived(provider) == prompt


@pytest.mark.parametrize(("typed", "sent"), TYPED.values(), ids=TYPED)
def test_only_our_own_braces_mean_something(
    shell: Shell, provider: FakeProvider, capsys: Capsys, typed: str, sent: str
) -> None:
    written = run(shell, f"%%mmsp --quiet\n{typed}\n", capsys)
    assert provider.requests, written
    assert arrived(provider) == sent


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_the_line_feed_that_ends_a_cell_is_no_part_of_it(
    shell: Shell, provider: FakeProvider, capsys: Capsys, end: str
) -> None:
    run(shell, f"%%mmsp\na\r\nb{end}", capsys)
    assert arrived(provider) == "a\r\nb"


ENDS = set("\n\r\u2028\u2029\x85\x0b\x0c\x1c")
LINES = [
    name
    for name, prompt in VERBATIM.items()
    if prompt == prompt.strip() and not set(prompt) & ENDS and not prompt.endswith("\\")
]


@pytest.mark.parametrize("name", LINES)
def test_a_line_arrives_as_it_was_typed(shell: Shell, provider: FakeProvider, capsys: Capsys, name: str) -> None:
    prompt = VERBATIM[name]
    written = run(shell, f"%mmsp ask {'-- ' if prompt.startswith('-') else ''}{prompt}", capsys)
    assert provider.requests, written
    assert arrived(provider) == prompt


@pytest.mark.parametrize("start", ["answer = ", "if True:\n    ", "  "])
@pytest.mark.parametrize("name", ["braces", "dollars", "an f-string", "JSON", "apostrophes", "double spaces", "LaTeX"])
def test_a_line_arrives_wherever_it_stands(
    shell: Shell, provider: FakeProvider, capsys: Capsys, start: str, name: str
) -> None:
    written = run(shell, f"{start}%mmsp ask {VERBATIM[name]}", capsys)
    assert provider.requests, written
    assert arrived(provider) == VERBATIM[name]


@pytest.mark.parametrize("prompt", ["what's this?", "why # not?", "a?", "is {x} or $x `it`??", "a # b", "--", "a;"])
def test_question_marks_and_number_signs_are_text_in_a_line(
    shell: Shell, provider: FakeProvider, capsys: Capsys, prompt: str
) -> None:
    typed = f"-- {prompt}" if prompt.startswith("-") else prompt
    written = run(shell, f"%mmsp ask {typed}", capsys)
    assert provider.requests, written
    assert arrived(provider) == prompt


@pytest.mark.parametrize("body", ["{x} $x", "it's", "a  b", r"\frac{a}{b}"])
def test_the_same_text_arrives_through_every_door(
    shell: Shell, provider: FakeProvider, capsys: Capsys, body: str
) -> None:
    for code in (
        f"%%time\n%%mmsp\n{body}",
        f"%%capture out\n%%mmsp\n{body}",
        f"for _ in range(1):\n    get_ipython().run_cell_magic('mmsp', '', {body!r})",
        f"get_ipython().run_line_magic('mmsp', {'ask ' + body!r})",
        f"chat.ask({body!r})",
    ):
        before = len(provider.requests)
        written = run(shell, code, capsys)
        assert len(provider.requests) == before + 1, written
        assert arrived(provider) == body, code


def test_options_may_follow_a_comment_and_values_keep_their_spaces(
    shell: Shell, provider: FakeProvider, capsys: Capsys
) -> None:
    run(shell, "%%mmsp --system 'it {x}  is \"so\"' # a comment -m nosuch\nhi", capsys)
    system = provider.requests[-1].body["messages"][0]
    assert system["content"] in ('it {x}  is "so"', [{"type": "text", "text": 'it {x}  is "so"'}])
