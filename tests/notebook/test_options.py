"""What can be typed after %%mmsp and %mmsp, and what is said when it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb.notebook.options import OptionError, Options, parse_cell, parse_line


def given(line: str) -> dict[str, Any]:
    options = parse_cell(line, "prompt\n")
    return {name: getattr(options, name) for name in options.given}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("-m gpt-5.5", {"model": "gpt-5.5"}),
        ("--model=gpt-5.5 --client-type openai-chat", {"model": "gpt-5.5", "client_type": "openai-chat"}),
        ("--chat work --new --quiet", {"chat": "work", "new": True, "quiet": True}),
        ('--system "Be brief, don\'t \\"talk\\""', {"system": 'Be brief, don\'t "talk"'}),
        ("--system 'one word'", {"system": "one word"}),
        ("--system {{ rules[0] }} -q", {"system": "{{ rules[0] }}", "quiet": True}),
        ("--tools a, --max-tokens 1_000", {"tools": ["a"], "max_tokens": 1000}),
        ("--tools a,b", {"tools": ["a", "b"]}),
        ("--no-tools", {"tools": []}),
        ("--temperature 0.5 --thinking HIGH --max-turns 3", {"temperature": 0.5, "thinking": "high", "max_turns": 3}),
        ("--out answer # and a comment -m x", {"out": "answer"}),
        ("# only a comment", {}),
        ("-o a --dry-run", {"out": "a", "dry_run": True}),
        ("-m some/model#3", {"model": "some/model#3"}),
        ("--stop } --out x", {"stop": ["}"], "out": "x"}),
        ("--stop { -q", {"stop": ["{"], "quiet": True}),
        ("--stop a}b -m x", {"stop": ["a}b"], "model": "x"}),
        ("--system {{ {1: 2}[1] }} -q", {"system": "{{ {1: 2}[1] }}", "quiet": True}),
        ("--system\tterse\t-m\tdemo\t# words", {"system": "terse", "model": "demo"}),
    ],
)
def test_options_are_read(line: str, expected: dict[str, Any]) -> None:
    assert given(line) == expected


def test_the_prompt_of_a_cell_is_taken_byte_for_byte() -> None:
    body = "  {x} $HOME 'q' \"d\" \\n %time\n\n# not a comment\n"
    assert parse_cell("", body).prompt == body


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--modle x", "there is no option --modle; did you mean '--model'?"),
        ("-x", "there is no option -x"),
        ("-m", "--model needs a value: --model ID"),
        ("-m # nothing", "--model needs a value: --model ID"),
        ("-m --new", "--model needs a value, and --new is the next option"),
        ("--new=yes", "--new takes no value"),
        ("--max-tokens many", "--max-tokens needs a whole number from 1 on, not 'many'"),
        ("--max-turns 0", "--max-turns needs a whole number from 1 on, not '0'"),
        ("--temperature hot", "--temperature needs a number from 0 on, not 'hot'"),
        ("--thinking hihg", "not 'hihg'; did you mean 'high'?"),
        ("--out 2x", "--out needs the name of a variable, and '2x' cannot be one"),
        ("--out class", "--out needs the name of a variable, and 'class' cannot be one"),
        ('--system "open', 'the quote " after --system is never closed'),
        ("-m a -m b", "--model is given twice"),
        ("--tools a --no-tools", "--tools and --no-tools do not go together"),
        (
            "gpt-5.5",
            "unexpected 'gpt-5.5' after %%mmsp: the prompt goes on the lines below; write -m gpt-5.5 for a model",
        ),
        ("what is this", "unexpected 'what' after %%mmsp: the prompt goes on the lines below"),
        ("--type dict[str, int]", "a value with spaces is quoted: --type 'dict[str, int]'"),
        ("--type str | None", "a value with spaces is quoted: --type 'str | None'"),
        ("--compare demo, demo:fast --new", "a value with spaces is quoted: --compare 'demo, demo:fast'"),
        ("--system Be brief.", "a value with spaces is quoted: --system 'Be brief.'"),
        ("ask", "%mmsp ask, with one %, is a line of its own"),
        ("--max-cost 1 --budget 2", "--max-cost and --budget do not go together"),
        ("--stop ''", "--stop needs some text, not ''"),
        ("-m ''", "--model needs some text, not ''"),
    ],
)
def test_a_wrong_option_is_one_line_that_says_what_to_do(line: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_cell(line, "prompt")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(OptionError, match="the prompt is empty"):
        parse_cell("", "  \n")


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        ("ask what's up?", "what's up?"),
        ('ask say "hello" # here', 'say "hello" # here'),
        ("ask   spaced   out ", "spaced   out"),
        ("ask -5 degrees, is that cold?", "-5 degrees, is that cold?"),
        ("ask -- --new is a flag", "--new is a flag"),
        ("ask it's 'quoted", "it's 'quoted"),
    ],
)
def test_the_prompt_of_a_line_is_text(line: str, prompt: str) -> None:
    command, options = parse_line(line)
    assert command == "ask"
    assert isinstance(options, Options)
    assert options.prompt == prompt
    assert options.given == []


def test_a_line_may_begin_with_options() -> None:
    _, options = parse_line("ask -m demo --out a don't stop")
    assert isinstance(options, Options)
    assert (options.model, options.out, options.prompt) == ("demo", "a", "don't stop")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ("status", [])),
        ("model", ("model", [])),
        ("tools add f, g # both", ("tools", ["add", "f,", "g"])),
        ("reset #x", ("reset", [])),
    ],
)
def test_subcommands_are_split_into_words(line: str, expected: tuple[str, list[str]]) -> None:
    assert parse_line(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("modle", "there is no %mmsp modle; did you mean 'model'?"),
        ("what is the time", "there is no %mmsp what; to ask something, write %mmsp ask what is the time"),
        ("--new", "options come after ask"),
        ("ask", "%mmsp ask needs a prompt"),
        ("ask --modle x y", "did you mean '--model'?"),
    ],
)
def test_a_wrong_line_is_one_line_too(line: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_line(line)
    assert message in str(caught.value)
