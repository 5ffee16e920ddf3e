"""What the page is made of: one module, what comes from others unchanged, formulas as inert MathML."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mmsp_nb import Conversation
from mmsp_nb.notebook import assets
from mmsp_nb.notebook.formulas import mathml
from mmsp_nb.notebook.markdown import to_html

STATIC = Path(assets.__file__).parent / "static"
OWN = ["figures", "dom", "attach", "compose", "keep", "list", "rows", "sanitize", "inspector", "widget", "traces"]


def test_what_comes_from_others_is_what_was_published():
    text = (STATIC / "vendor" / "README.md").read_text()
    rows = dict(re.findall(r"^\| (\S+) \|.*`([0-9a-f]{64})` \|$", text, re.MULTILINE))
    files = [path for path in (STATIC / "vendor").iterdir() if path.suffix != ".md"]
    assert {path.name for path in files} == set(rows)
    for path in files:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == rows[path.name]
        first = path.read_text().partition("\n")[0]
        assert "license" in first.lower() and "3.5.0" in first and "3.5.0" in text


@pytest.mark.parametrize("name", ["widget.js", "traces.js"])
def test_a_bundle_is_one_module_that_loads_nothing(name):
    code = assets.bundle(name)
    assert not re.search(r"^import\b", code, re.MULTILINE) and "sourceMappingURL" not in code
    assert len(re.findall(r"^export\b", code, re.MULTILINE)) == 1
    assert code.count("github.com/cure53/DOMPurify/blob") == 1, "the licence notice goes with it"
    known = r"https?://(?!www\.w3\.org/|github\.com/(?:cure53|babel)/)"  # name spaces and licence notices
    assert not re.search(known, code.replace("https?:", ""))


def test_names_at_the_top_of_the_modules_do_not_meet():
    names = []
    for name in OWN[:-1]:
        code = (STATIC / f"{name}.js").read_text()
        names += re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", code, re.MULTILINE)
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_html_is_inserted_in_one_place_only():
    for name in OWN:
        code = (STATIC / f"{name}.js").read_text()
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "eval(",
            "new Function",
        ):
            assert way not in code, f"{way} in {name}.js"
        for line in code.splitlines():
            if re.search(r"\bhtml\b", line) and name not in ("sanitize", "keep"):
                assert "sanitized(" in line or "row.html !== undefined" in line or "html:" in line, line


def test_themes_come_from_the_front_end_with_something_to_fall_back_on():
    css = (STATIC / "inspector.css").read_text()
    uses = re.findall(r"var\((--(?:jp|vscode)-[\w-]+)(,?)", css)
    assert uses and all(comma for _, comma in uses)
    root = css[: css.index("display: flex")]
    assert {name for name, _ in uses} == set(re.findall(r"--(?:jp|vscode)-[\w-]+", root)), "colours are named once"
    assert "@import" not in css and "url(" not in css and "@font-face" not in css


@pytest.mark.parametrize("tex", [r"E = mc^2", r"\frac{1}{2}", r"\sqrt[3]{x}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"])
def test_formulas_are_mathml(tex):
    html = mathml(tex, True)
    assert '<math display="block">' in html
    ElementTree.fromstring(html)


HOSTILE = [
    r"\text{<img src=x onerror=alert(1)>}",
    r"\text{&#60;img src=x onerror=alert(1)&#62;}",
    r"\text{</mtext></math><script>alert(1)</script>}",
    r"\href{javascript:alert(1)}{x}",
    r"\style{background:url(x)}{x}",
    r"\class{jp-Dialog}{x}",
    r"\hspace{1em\" onmouseover=\"x}",
    r"\color{red\" onmouseover=\"x}{y}",
    r"\unknown{x}",
    r"\left(",
    "{" * 500,
    "x^" * 900,
]


@pytest.mark.parametrize("tex", HOSTILE)
def test_formulas_of_strangers_are_inert(tex):
    html = mathml(tex, False)
    tree = ElementTree.fromstring(html)
    for element in tree.iter():
        assert element.tag in ("span", "code", "script-free") or element.tag == "math" or element.tag.startswith("m")
        assert not set(element.attrib) & {"href", "style", "class", "id", "onmouseover", "onerror"}


def test_what_cannot_be_read_is_shown_as_it_is_written():
    assert mathml(r"\unknown{x}", False) == r"<span><code>$\unknown{x}$</code></span>"


def test_a_unit_stands_upright():
    assert "<mtext>m</mtext>" in mathml(r"11\,\mathrm{m}", False)


def test_prices_stay_prices_and_cells_still_leave_formulas_to_mathjax():
    assert "<math" not in to_html("It costs $5 or $6.", formula=mathml)
    assert "<math" in to_html("It is $x^2$.", formula=mathml)
    assert "$x^2$" in to_html("It is $x^2$.")


def test_exported_pages_draw_formulas_without_a_script():
    from mmsp_nb.turns import Turn

    chat = Conversation("demo")
    said = {"type": "text.done", "text": r"So $e^{i\pi} = -1$."}
    turn = Turn(model="m", state="done", reason="answer", messages=[{"role": "assistant", "content_items": [said]}])
    chat.turns = [turn]
    html = chat.export(format="html")
    assert "<math" in html and "<script" not in html
