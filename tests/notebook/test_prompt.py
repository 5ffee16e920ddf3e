"""{{expression}} in a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb.notebook.options import OptionError
from mmsp_nb.notebook.prompt import expand


def test_everything_else_is_left_byte_for_byte() -> None:
    text = "{x} ${x} $x { {x} } }} %time !ls \\n \\ 'a' \"b\"\r\n\t{%raw%}"
    assert expand(text, {"x": 1}) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a {{x}} b", "a 1 b"),
        ("{{ x }}{{x}}", "11"),
        ("{{s}}", "{{x}} and {x}"),
        ("\\{{x}} {{x}}", "{{x}} 1"),
        ("{{ {'a': {'b': x}}['a']['b'] }}", "1"),
        ("{{{'a': {'b': x}}['a']['b']}}", "1"),
        ("{{ '}}' }}{{ \"{{\" }}", "}}{{"),
        ("{{ f'{x:>3}' }}", "  1"),
        ("{{ [i for i in range(3)\n if i != x] }}", "[0,2]"),
        ("{{ (lambda y: y + x)(1) }}", "2"),
        ("{{none}} {{yes}}", "None True"),
        ("{{ x  # one\n}}", "1"),
    ],
)
def test_expressions_are_replaced(text: str, expected: str) -> None:
    assert expand(text, {"x": 1, "s": "{{x}} and {x}", "none": None, "yes": True}) == expected


def test_each_expression_is_evaluated_once() -> None:
    calls: list[int] = []

    def count() -> str:
        calls.append(1)
        return "{{count()}}"

    assert expand("{{count()}}", {"count": count}) == "{{count()}}"
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\ntwo {{nme}}", "line 3: {{nme}}: NameError: name 'nme' is not defined; did you mean 'name'?"),
        ("{{1/0}}", "line 2: {{1/0}}: ZeroDivisionError: division by zero"),
        ("{{a b}}", "line 2: {{a b}} is no Python expression"),
        ("{{a +}} and {{name}}", "line 2: {{a +}} is no Python expression"),
        ("{{}}", "line 2: {{}} holds no expression; write \\{{ for the characters themselves"),
        ("so\n\n{{name", "line 4: {{name is never closed; write \\{{ for the characters themselves"),
        ("{{x = 1}}", "line 2: {{x = 1}} is no Python expression"),
    ],
)
def test_a_failing_expression_names_itself_and_its_line(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        expand(text, {"name": "x"}, first_line=2)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_and_arrays_are_labelled_and_bounded() -> None:
    import numpy
    import pandas

    frame = pandas.DataFrame({"port": ["Brest"] * 1000, "range": range(1000)})
    text = expand("{{df}}", {"df": frame})
    assert isinstance(text, str)
    assert "1,000 rows" in text
    assert "port" in text
    assert len(text) < 5_000
    array = expand("{{a}}", {"a": numpy.zeros((500, 500))})
    assert "shape (500, 500)" in array
    assert len(array) < 20_000


def test_an_exception_is_its_traceback_and_a_function_its_source() -> None:
    def caught() -> Exception:
        try:
            raise KeyError("tide")
        except KeyError as error:
            return error

    text = expand("{{error}}", {"error": caught()})
    assert text.startswith("Traceback (most recent call last)")
    assert text.endswith("KeyError: 'tide'")
    assert "def test_an_exception" in expand(
        "{{f}}", {"f": test_an_exception_is_its_traceback_and_a_function_its_source}
    )


def test_long_values_are_cut_and_strings_are_not() -> None:
    assert expand("{{s}}", {"s": "x" * 100_000}) == "x" * 100_000
    assert len(expand("{{v}}", {"v": list(range(100_000))})) < 25_000


def test_a_figure_becomes_a_picture_in_its_place() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    parts: Any = expand("Before {{figure}} after {{name}}.", {"figure": figure, "name": "x"})
    assert parts[0] == "Before "
    assert parts[1]["type"] == "image_url.done"
    assert parts[1]["image_url"].startswith("data:image/png;base64,")
    assert parts[2] == " after x."
