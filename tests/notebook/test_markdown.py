"""Markdown of strangers as HTML: nothing in it acts, everything in it can be read."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser

import pytest
from hostile import VECTORS

from mmsp_nb.notebook.markdown import stylesheet, to_html
from mmsp_nb.notebook.render import text_html, thinking_html, wrap
from mmsp_nb.notebook.sanitize import clean, escape, single_line

TAGS = {
    "div", "p", "span", "a", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "table", "thead",
    "tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "br", "input", "details", "summary", "style",
}  # fmt: skip
VOID = {"hr", "br", "input"}
ATTRIBUTES = {"style", "class", "href", "title", "target", "rel", "start", "type", "disabled", "checked", "open"}


class Strict(HTMLParser):
    """Fails on anything that is not on the lists, and on elements that are not closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "href":
                assert re.match(r"https?://|mailto:", value or ""), value
            if name in ("style", "class"):
                assert not re.search(r"url\(|expression|javascript", value or "", re.I)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.stack or self.stack[-1] != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")

    unknown_decl = handle_pi = handle_comment


def parsed(markup: str) -> Strict:
    parser = Strict()
    parser.feed(markup)
    parser.close()
    assert parser.stack == []
    return parser


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_hostile_text_becomes_inert_html(vector: str) -> None:
    for markup in (wrap(text_html(vector)), wrap(thinking_html(vector, running=False)), escape(clean(vector))):
        parser = parsed(markup)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", parser.text)
        markup.encode("utf-8")


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_tex_is_only_where_we_put_it(vector: str) -> None:
    """MathJax looks for delimiters in each text between tags: outside of formulas a dollar stands alone."""
    markup = re.sub(
        r"<(code|pre)\b.*?</\1>|<span>\$[^<]+\$</span>|<div>\$\$[^<]+\$\$</div>", "", to_html(vector), flags=re.S
    )
    for text in re.split(r"<[^>]*>", markup):
        text = html.unescape(text)
        assert not re.search(r"\$.|.\$|\\[(\[]|\\begin", text), text
    for formula in re.findall(r"<(?:span|div)>\$+([^<$]+)\$+<", to_html(vector)):
        assert not re.search(r"href|style|require|def", formula)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("costs $5 and $10", "<p>costs <span>$</span>5 and <span>$</span>10</p>"),
        ("US$5 to A$6", "<p>US<span>$</span>5 to A<span>$</span>6</p>"),
        ("$5 now and then A$", "<p><span>$</span>5 now and then A<span>$</span></p>"),
        ("$x_1 + y_1$", "<p><span>$x_1 + y_1$</span></p>"),
        (r"\(a < b\)", "<p><span>$a &lt; b$</span></p>"),
        ("`$x$ \\(y\\)`", "<p><code>$x$ \\(y\\)</code></p>"),
        ("\\[\na\n\n- b\n\\]", "<div>$$a\n\n- b$$</div>"),
        ("a $$b$$ c", "<p>a <span>$$b$$</span> c</p>"),
        ("2 &lt; 3 &amp; &copy;", "<p>2 &lt; 3 &amp; ©</p>"),
        ("Title\n---\ntext", "<p>Title</p>\n<hr />\n<p>text</p>"),
        ("a<br>b", "<p>a<br />\nb</p>"),
        (
            "[1]: https://a.b",
            '<p>[1]: <a href="https://a.b" target="_blank" rel="noopener noreferrer nofollow">https://a.b</a></p>',
        ),
        (
            "![cat](https://a.b/c.png)",
            '<p><a href="https://a.b/c.png" target="_blank" rel="noopener noreferrer nofollow">image: cat</a></p>',
        ),
        ("![cat](data:image/png;base64,AAAA)", "<p><em>[image: cat]</em></p>"),
        ("[f](file.txt)", "<p>f <em>(link left out)</em></p>"),
    ],
)
def test_what_it_makes_of_it(text: str, expected: str) -> None:
    assert to_html(text).strip() == expected


def test_a_table_keeps_rows_with_too_few_or_too_many_cells() -> None:
    markup = to_html("| a | b |\n|:-:|--:|\n| 1 |\n| 1 | 2 | 3 |\n| `x|y` | 2 |\n")
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", markup)]
    assert cells == ["1", "", "1", "2 | 3", "x|y", "2"]
    assert 'class="mmsp-m"' in markup
    assert 'class="mmsp-r"' in markup


def test_code_is_coloured_with_classes_of_ours_and_only_then_brings_a_stylesheet() -> None:
    markup = to_html("```python\ndef f(): return 'a'  # b\n```")
    assert '<span class="mmsp-k">def' in markup
    assert set(re.findall(r'class="([^"]+)"', markup)) <= {
        "mmsp-k",
        "mmsp-f",
        "mmsp-s",
        "mmsp-c",
        "mmsp-o",
    }
    selectors = re.findall(r"([^{}]+)\{", stylesheet(markup).removeprefix("<style>"))
    assert selectors
    assert all(".mmsp" in part for selector in selectors for part in re.split(r",(?![^(]*\))", selector))
    assert len(stylesheet(markup)) < 700
    assert stylesheet(to_html("plain")) == ""


def test_an_unknown_language_and_a_huge_block_stay_plain() -> None:
    assert "class=" not in to_html("```nonsense\nx = 1\n```")
    assert "class=" not in to_html("```python\n" + "x = 1\n" * 5_000 + "```")


NASTY = {
    "quotes": ">" * 5000, "brackets": "[" * 5000, "stars": "*a " * 3000, "ticks": "`" + "` `` " * 2500,
    "parens": r"\( " * 4000, "squares": r"\[ " * 4000, "images": "![" * 4000, "dollars": "$$ " * 4000,
    "links": "[a](" * 4000, "pipes": "|" * 8000 + "\n|" + "-|" * 7999, "money": "$1" + ", b" * 5000 + "$",
    "nested": "\n".join("  " * i + "- x" for i in range(300)), "tags": "<a " * 5000, "deep": "> - " * 1000,
}  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_a_text_made_to_be_slow_is_not(name: str) -> None:
    begin = time.process_time()
    parsed(to_html(NASTY[name]))
    assert time.process_time() - begin < 2


def test_clean_text_is_untouched_and_odd_characters_are_visible() -> None:
    assert clean("plain ünïcode 漢字 🙂\n\ttab") == "plain ünïcode 漢字 🙂\n\ttab"
    assert clean("a\r\nb\rc\u2028d") == "a\nb\nc\nd"
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07x") == "red x"
    assert clean("a\x00b\x07\u202ec\ud800") == "a␀b␇⟨U+202E⟩c\ufffd"


def test_one_line_is_one_line() -> None:
    assert single_line("a\n b\t c  ", 40) == "a b c"
    assert single_line("word " * 50, 20) == "word word word word…"
