"""Markdown of a model as HTML that is safe to show in a trusted notebook, typeset by MathJax where it means formulas.

`display(Markdown(text))` would run whatever HTML the model wrote. Here HTML is text, links lead to
http, https and mailto only, pictures are never fetched, and formulas use no macro that reaches into the page.
The look comes from Jupyter's own stylesheet; what is added is a few rules with the prefix ``mmsp-``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from mmsp_nb.styles import WRAPPED

from .sanitize import clean, escape

if TYPE_CHECKING:
    from collections.abc import Callable
    from re import Match

__all__ = ["CODE_CSS", "TABLE_CSS", "code_block", "is_mathematics", "stylesheet", "to_html"]

HIGHLIGHT_LIMIT = 20_000
"""Longer code blocks (in characters) are shown without colours."""

CODE_CSS = (
    ".mmsp-k{color:var(--jp-mirror-editor-keyword-color,#2a8a4a);font-weight:600}"
    ".mmsp-s{color:var(--jp-mirror-editor-string-color,#c2453d)}"
    ".mmsp-c{color:var(--jp-mirror-editor-comment-color,#5b8a8a);font-style:italic}"
    ".mmsp-n{color:var(--jp-mirror-editor-number-color,#2f9157)}"
    ".mmsp-f{color:var(--jp-mirror-editor-def-color,#4477dd)}"
)
TABLE_CSS = (
    # the class three times: Jupyter's rule for tables outside of its own Markdown is stronger than one
    ".mmsp.mmsp.mmsp table{margin:.5em 0 .8em;font-size:inherit}.mmsp.mmsp.mmsp :is(th,td){text-align:left}"
    ".mmsp.mmsp.mmsp .mmsp-r{text-align:right}.mmsp.mmsp.mmsp .mmsp-m{text-align:center}"
)

_PRE = (
    "margin:.5em 0;padding:.6em .8em;border-radius:4px;overflow-x:auto;line-height:1.4;"
    "background:var(--jp-layout-color2,#80808020);word-break:normal"
)
_URL = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20]+", re.IGNORECASE)
# macros that make links, carry HTML or CSS, load extensions, or could rename one of these
_UNSAFE_TEX = re.compile(
    r"\\(?:href|url|style|class|cssId|data|require|mmlToken|csname|[gex]?def|let|futurelet|newcommand|renewcommand|"
    r"providecommand|newenvironment|renewenvironment|DeclareMathOperator|DeclarePairedDelimiters?|includegraphics|texttip|"
    r"mathtip|bbox|unicode|toggle|action|begingroup|endgroup|global|catcode|char|verb)(?![a-z])",
    re.IGNORECASE,
)
_ENVIRONMENTS = (
    r"(?:equation|align|alignat|gather|multline|eqnarray|split|aligned|gathered|cases|[bpvBV]?matrix|array)\*?"
)
_BLOCK_MATH = (
    r"^ {0,3}(?:\$\$(?P<mathblock_dollar>[^$]+?)\$\$"
    r"|\\\[(?P<mathblock_bracket>[\s\S]+?)\\\]"
    r"|(?P<mathblock_env>\\begin\{(?P<mathblock_name>"
    + _ENVIRONMENTS
    + r")\}[\s\S]{1,4000}?\\end\{(?P=mathblock_name)\})"
    r")[ \t]*(?:\n|$)"
)
_INLINE_MATH = (
    r"\$\$(?P<math_display>[^$]{1,4000}?)\$\$"
    r"|(?<![0-9A-Za-z$])\$(?![\s$])(?P<math_dollar>(?:[^$\\\n]|\\.)+?)(?<!\s)\$(?![0-9A-Za-z])"
    # a formula holds no second opening delimiter: so a text full of them is read once, not once for each
    r"|\\\((?P<math_paren>(?:[^\\]|\\[^()\[\]])+)\\\)"
    r"|\\\[(?P<math_bracket>(?:[^\\]|\\[^()\[\]])+)\\\]"
)
_MONEY = re.compile(r"\d[^\\]*\s[^\\]*\Z")
_WORD = re.compile(r"[A-Za-z]{2}")
_TABLE = (
    r"^ {0,3}(?P<table_head>[^\n|]*\|[^\n]*)\n"
    r" {0,3}(?P<table_rule>(?=[^\n]*\|)(?=[^\n]*-)\|?[ \t:-]+(?:\|[ \t:-]*)*)(?:\n|$)"
)
_CELLS = re.compile(r"((?:[^|\\]|\\.)*)(?:\||$)", re.DOTALL)
_CELLS_AND_CODE = re.compile(r"((?:`[^`]*`|[^|\\]|\\.)*)(?:\||$)", re.DOTALL)
_LINK = 'target="_blank" rel="noopener noreferrer nofollow"'
_TASK_BOX = '<input type="checkbox" disabled'


def is_mathematics(tex: str) -> bool:
    """Whether ``tex`` uses no macro that could reach out of its formula."""
    return not _UNSAFE_TEX.search(tex) and "$" not in tex.replace(r"\$", "")


def _formula(tex: str, display: bool) -> str:
    """``tex`` between dollars for MathJax, or as plain code when it holds more than mathematics."""
    mark = "$$" if display else "$"
    if not is_mathematics(tex):
        return f"<code>{escape(mark + tex + mark, tex=False)}</code>"
    body = escape(tex.strip(), tex=False)
    return f"<div>{mark}{body}{mark}</div>\n" if display else f"<span>{mark}{body}{mark}</span>"


def _parse_block_math(block: Any, match: Match[str], state: Any) -> int:
    tex = match.group("mathblock_dollar") or match.group("mathblock_bracket") or match.group("mathblock_env")
    state.append_token({"type": "formula", "raw": tex, "attrs": {"display": True}})
    return match.end()


def _parse_inline_math(inline: Any, match: Match[str], state: Any) -> int | None:
    dollar = match.group("math_dollar")
    if dollar is not None and _MONEY.match(dollar) and _WORD.search(dollar):
        return None  # "$5 now, later A$"
    display = match.group("math_display") or match.group("math_bracket")
    tex = display or dollar or match.group("math_paren")
    # a <div> may not stand inside a paragraph, so displayed formulas there stay spans
    state.append_token({"type": "inline_formula", "raw": tex, "attrs": {"display": display is not None}})
    return match.end()


def _cells(row: str, width: int | None = None) -> list[str]:
    """The cells of one row; with ``width``, padded or joined to that many, so that no row breaks its table."""
    row = row.strip().removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    cells = [cell.strip() for cell in _CELLS.findall(row)[:-1]] if row else [""]
    if width is not None and len(cells) > width:
        in_code = [cell.strip() for cell in _CELLS_AND_CODE.findall(row)[:-1]]
        cells = in_code if len(in_code) == width else [*cells[: width - 1], " | ".join(cells[width - 1 :])]
    if width is not None:
        cells += [""] * (width - len(cells))
    return [cell.replace("\\|", "|") for cell in cells]


def _align(rule: str) -> str | None:
    left, right = rule.startswith(":"), rule.endswith(":")
    return "center" if left and right else "right" if right else None


def _parse_table(block: Any, match: Match[str], state: Any) -> int | None:
    rules = _cells(match.group("table_rule"))
    head = _cells(match.group("table_head"))
    if len(head) != len(rules) or not all("-" in rule for rule in rules):
        return None
    aligns = [_align(rule) for rule in rules]

    def row(cells: list[str], head: bool) -> list[dict[str, Any]]:
        return [
            {"type": "table_cell", "text": cell, "attrs": {"align": align, "head": head}}
            for cell, align in zip(cells, aligns, strict=True)
        ]

    rows: list[dict[str, Any]] = []
    position = match.end()
    while position < state.cursor_max:
        line = state.get_line(position)
        if "|" not in line or line.startswith(("    ", "\t")):
            break
        rows.append({"type": "table_row", "children": row(_cells(line, len(aligns)), False)})
        position += len(line)
    children: list[dict[str, Any]] = [{"type": "table_head", "children": row(head, True)}]
    state.append_token({"type": "table", "children": children + [{"type": "table_body", "children": rows}]})
    return position


def _parse_break(inline: Any, match: Match[str], state: Any) -> int:
    state.append_token({"type": "linebreak"})
    return match.end()


@cache
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@cache
def _token_class(token: Any) -> str:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    classes = (
        (Comment, "mmsp-c"),
        (Keyword, "mmsp-k"),
        (Operator.Word, "mmsp-k"),
        (String, "mmsp-s"),
        (Number, "mmsp-n"),
        (Name.Function, "mmsp-f"),
        (Name.Class, "mmsp-f"),
        (Name.Builtin, "mmsp-f"),
        (Name.Decorator, "mmsp-f"),
        (Name.Tag, "mmsp-k"),
        (Name.Attribute, "mmsp-f"),
    )
    return next((name for kind, name in classes if token in kind), "")


def _highlight(code: str, language: str) -> str:
    lexer = _lexer(language.lower()) if language and len(code) <= HIGHLIGHT_LIMIT else None
    if lexer is None:
        return escape(code, tex=False)
    parts: list[str] = []
    current, pending = "", ""
    for token, value in lexer.get_tokens(code):
        name = _token_class(token) if value.strip() else current
        if name != current:
            parts.append(f'<span class="{current}">{pending}</span>' if current else pending)
            current, pending = name, ""
        pending += escape(value, tex=False)
    parts.append(f'<span class="{current}">{pending}</span>' if current else pending)
    return "".join(parts)


def code_block(code: str, language: str = "", *, style: str = "") -> str:
    """A ``pre`` with ``code`` in it, coloured when pygments knows ``language``. Needs `CODE_CSS` beside it."""
    coloured = _highlight(clean(code), language)
    return f'<pre style="{_PRE}{style}"><code style="background:none;padding:0">{coloured}</code></pre>\n'


@cache
def _parser(formula: Callable[[str, bool], str]) -> Callable[[str], str]:
    import mistune
    from mistune.util import unescape

    class SafeRenderer(mistune.HTMLRenderer):
        def text(self, text: str) -> str:
            if "&" in text:
                text = clean(unescape(text))  # `&copy;` is an entity in Markdown, and may stand for anything
            return escape(text)

        def link(self, text: str, url: str, title: str | None = None) -> str:
            if not _URL.fullmatch(url):
                return f"{text} <em>(link left out)</em>"
            shown = f' title="{escape(title, tex=False)}"' if title else ""
            return f'<a href="{escape(url, tex=False)}"{shown} {_LINK}>{text}</a>'

        def image(self, text: str, url: str, title: str | None = None) -> str:
            # fetching it would tell the address's owner what is read here, and when
            label = f"image: {text}" if text else "image"
            return self.link(label, url, title) if _URL.fullmatch(url) else f"<em>[{label}]</em>"

        def codespan(self, text: str) -> str:
            return f"<code>{escape(text, tex=False)}</code>"

        def block_code(self, code: str, info: str | None = None) -> str:
            language = re.split(r"[\s{,:]", info.strip(), maxsplit=1)[0] if info else ""
            return code_block(code.rstrip("\n"), language)

        def inline_html(self, html: str) -> str:
            return escape(html)

        def block_html(self, html: str) -> str:
            return f"<p>{escape(html)}</p>\n"

        def block_error(self, text: str) -> str:
            return f"<p>{escape(text)}</p>\n"

        def heading(self, text: str, level: int, **attrs: Any) -> str:
            return f"<h{level}>{text}</h{level}>\n"

        def formula(self, text: str, display: bool) -> str:
            return formula(text, display)

        def inline_formula(self, text: str, display: bool) -> str:
            html = formula(text, display)
            return html.strip().replace("<div>", "<span>").replace("</div>", "</span>")

        def table(self, text: str) -> str:
            return f'<div style="overflow-x:auto"><table>\n{text}</table></div>\n'

        def table_head(self, text: str) -> str:
            return f"<thead><tr>{text}</tr></thead>\n"

        def table_body(self, text: str) -> str:
            return f"<tbody>{text}</tbody>\n"

        def table_row(self, text: str) -> str:
            return f"<tr>{text}</tr>\n"

        def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
            tag = "th" if head else "td"
            place = {"right": ' class="mmsp-r"', "center": ' class="mmsp-m"'}.get(align or "", "")
            return f"<{tag}{place}>{text}</{tag}>"

        def task_list_item(self, text: str, checked: bool = False) -> str:
            box = f"{_TASK_BOX}{' checked' if checked else ''}> "
            if text.startswith("<p>"):
                return f'<li style="list-style:none"><p>{box}{text[3:]}</li>\n'
            return f'<li style="list-style:none">{box}{text}</li>\n'

    plugins = ["strikethrough", "url", "task_lists"]
    markdown = mistune.create_markdown(escape=True, renderer=SafeRenderer(escape=True), plugins=plugins)
    markdown.renderer.register("task_list_item", SafeRenderer.task_list_item)  # the plugin registered its own
    block, inline = markdown.block, markdown.inline
    # mistune's own table becomes a paragraph when one row has a cell too many or too few, as every unfinished one
    block.register("formula", _BLOCK_MATH, _parse_block_math, before="list")
    block.register("table", _TABLE, _parse_table, before="list")
    for name in ("formula", "table"):
        for rules in (block.block_quote_rules, block.list_rules):
            block.insert_rule(rules, name, before="list")
    # HTML is text here. Link definitions would vanish from the answer and never reach an earlier output.
    for rules in (block.rules, block.block_quote_rules, block.list_rules):
        for name in ("raw_html", "block_html", "ref_link", "setex_heading"):
            if name in rules:
                rules.remove(name)
    inline.rules = [rule for rule in inline.rules if rule != "inline_html"]
    for name, pattern, parse, start in (
        ("formulas", _INLINE_MATH, _parse_inline_math, "$\\"),
        ("breaks", r"<br\s{0,4}/?>", _parse_break, "<"),
    ):
        inline.register(name, pattern, parse, before="escape")
        starts = getattr(inline, "_rule_start_chars", None)
        if isinstance(starts, dict):  # newer mistune skips plain text quickly when it knows where a rule can begin
            starts[name] = set(start)
    return markdown


def to_html(text: str, *, formula: Callable[[str, bool], str] = _formula) -> str:
    """The Markdown ``text`` as safe HTML, without a wrapper and without styles (see `stylesheet`).

    Args:
        text: Markdown of anybody.
        formula: Writes a formula as HTML, given its TeX and whether it stands in a line of its own. By default it is
            left to MathJax; `formulas.mathml` is for pages that have none.
    """
    text = clean(text)
    try:
        return str(_parser(formula)(text))
    except (RecursionError, ValueError, IndexError, KeyError, AttributeError, AssertionError):
        # a text made to break the parser is still shown, as it is
        return f'<pre style="{WRAPPED}">{escape(text, tex=False)}</pre>\n'


def prepare() -> None:
    """Load what drawing needs, so that the first text of a process is not drawn later than others. Idempotent."""
    to_html("```python\nx = 1\n```")


def stylesheet(html: str, there: str = "") -> str:
    """The one small ``style`` element that ``html`` needs, or an empty string. All its rules are ours alone.

    ``there``: HTML that stands before it in the same cell, whose rules hold for this one too.
    """
    needed = [
        css for css, needs in ((CODE_CSS, _has_code), (TABLE_CSS, _has_table)) if needs(html) and css not in there
    ]
    return f"<style>{''.join(needed)}</style>" if needed else ""


def _has_code(html: str) -> bool:
    return 'class="mmsp-' in html and "<pre" in html


def _has_table(html: str) -> bool:
    return "<table" in html
