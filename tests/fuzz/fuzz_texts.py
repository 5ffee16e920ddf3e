"""Targets: what people and models write. Prompts, magics, arguments of tools, Markdown, and what is drawn of it."""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any, Literal

from fuzz_source import Source

from mmsp_nb.blocks import code_blocks, parse_json
from mmsp_nb.notebook import markdown, options, prompt
from mmsp_nb.notebook.output import LiveOutput
from mmsp_nb.notebook.sanitize import clean, escape
from mmsp_nb.notebook.secrets import mask
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools.arguments import InvalidArguments, bind
from mmsp_nb.tools.definition import Tool

# Prompts and magics --------------------------------------------------------------------------------------

_NAME = re.compile(r"[a-z]\Z")


def prompt_text(data: bytes) -> None:
    """A prompt is read or refused in one line; what is inserted is never looked at again."""
    text = data.decode("utf-8", "surrogateescape")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "is" with a literal, and the like
        try:
            template = prompt.Template(text)
        except options.OptionError as error:
            _one_line(error)
            return
    found = template._expressions
    assert all(text[each.start + 2 : each.end - 2].strip() == each.source for each in found)
    if all(_NAME.match(each.source) for each in found):  # nothing else is ever evaluated here
        namespace = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "{{x}}\\{{")
        rebuilt, at = "", 0
        for each in found:
            rebuilt += text[at : each.start].replace("\\{{", "{{") + "{{x}}\\{{"
            at = each.end
        assert template.fill(namespace) == rebuilt + text[at:].replace("\\{{", "{{")


def prompt_seeds() -> Iterable[bytes]:
    yield b"Is {{ a }} more than {{b}}? \\{{no}} {{ {'k': {1: 2}}['k'] }} {{f'{a}}}'}}"
    yield b"{{\n[x for x in\n a]}} {{'}}'}} {{ # }}\n}} {{lambda: {}}}"
    yield b"{{" * 30 + b"}}" * 30


def magics(data: bytes) -> None:
    """A line is options and a prompt, or refused in one line."""
    text = data.decode("utf-8", "surrogateescape")
    line, _, body = text.partition("\n")
    try:
        cell = options.parse_cell(line, body)
        assert cell.help or cell.prompt == body
        cell.config()
    except options.OptionError as error:
        _one_line(error)
    try:
        command, found = options.parse_line(line)
        assert command in options.SUBCOMMANDS or not line.strip()
        if isinstance(found, options.Options):
            found.config()
    except options.OptionError as error:
        _one_line(error)


def magics_seeds() -> Iterable[bytes]:
    yield b'-m gpt-5.5 --temperature 0.5 --stop "a \\" b" --stop \'c\' --image {{x}} # why\nWhat?'
    yield b"ask -q --out x --thinking high -- -5 degrees, is that cold?\n"
    yield b"retry --compare a,b --format json --type list[int] --max-tokens 5 --top-p=0.5 --seed 1\n"
    yield b"tools add f g\n"
    for name in (*options.OPTIONS, *options.SUBCOMMANDS):
        yield f"{name} 1\nx".encode()


def suggestions(data: bytes) -> None:
    source = Source(data)
    assert isinstance(did_you_mean(source.text(), [source.text() for _ in range(5)]), str)


def _one_line(error: Exception) -> None:
    said = str(error)
    assert said and "\n" not in said and len(said) < 2_000, said


# Tools ------------------------------------------------------------------------------------------------------


def _sample(
    text: str,
    /,
    count: int = 1,
    ratio: float | None = None,
    names: list[str] | None = None,
    table: dict[str, list[int]] | None = None,
    kind: Literal["a", "b"] = "a",
    *,
    more: bool = False,
) -> None:
    """A function with parameters of all kinds."""


_TOOL = Tool.of(_sample)


def tool_arguments(data: bytes) -> None:
    """Arguments fit or are refused with a bounded reason that can be sent to the model."""
    source = Source(data)
    if source.byte() % 2:
        try:
            arguments = json.loads(source.rest())
        except (ValueError, RecursionError):
            return
    else:
        names = ("text", "count", "ratio", "names", "table", "kind", "more", source.text(8))
        arguments = {source.one_of(names): source.value() for _ in range(source.byte() % 8)}
    try:
        args, kwargs = bind(_TOOL, arguments)
    except InvalidArguments as error:
        assert str(error) and len(str(error)) < 20_000
    else:
        assert isinstance(args, list) and isinstance(kwargs, dict)


def tool_seeds() -> Iterable[bytes]:
    yield b'\x01{"text": "a", "count": "5", "ratio": "1e3", "names": "[\\"x\\"]", "table": {"a": [1]}, "kind": "b"}'
    yield b"\x01" + b"[" * 60 + b"]" * 60
    yield bytes([0, 4, 0, 2, 65, 66, 1, 3, 2, 1, 4, 0, 0])


# Markdown and drawing -------------------------------------------------------------------------------------

_TAGS = frozenset((
    "p", "div", "span", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code",
    "em", "strong", "del", "a", "table", "thead", "tbody", "tr", "th", "td", "style", "details", "summary", "sup",
))  # fmt: skip
_ATTRIBUTES = frozenset(
    ("class", "style", "href", "title", "rel", "target", "start", "colspan", "align", "open", "role")
)
_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


class _Page(HTMLParser):
    """Refuses all that could run, load or lead elsewhere."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, tag
        for name, value in attrs:
            assert name in _ATTRIBUTES or name.startswith(("aria-", "data-mmsp")), (tag, name, value)
            if name == "href":
                assert value and _LINK.match(value), value
            if name == "style":
                assert value and not re.search(r"url|expression|import|[<>@\\]", value, re.IGNORECASE), value

    handle_startendtag = handle_starttag

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    unknown_decl = handle_pi = handle_comment = handle_decl


def check_html(html: str) -> None:
    page = _Page()
    page.feed(html)
    page.close()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", html)


def markdown_html(data: bytes) -> None:
    """Whatever a model writes, its HTML shows and does nothing."""
    text = data.decode("utf-8", "surrogateescape")
    html = markdown.to_html(text)
    check_html(html)
    check_html(markdown.stylesheet(html) + markdown.code_block(text, text[:9].strip()))
    check_html(escape(clean(text)))
    assert clean(clean(text)) == clean(text)


def markdown_seeds() -> Iterable[bytes]:
    yield b'# A\n\n*b* **c** `d` [e](https://e.org "t") ![f](x.png) <b onclick=x>\n\n> - 1. g\n'
    yield b"| a | b |\n|--|:-:|\n| 1 | `2` |\n\n1. a\n   - b\n\n     c\n"
    yield b"```python\ndef f(): pass\n```\n$x_1$ \\(y\\) \\[z\\] $$\\href{javascript:x}{y}$$\n"
    yield b"\\begin{align}a\\end{align}\n"
    yield b"<script>x</script><img src=x onerror=y> [a](javascript:b) [c](data:text/html,d) <http://e> &lt; <br/>\n"
    yield b"[a]: javascript:x\n[a] [b][a] ~~s~~ \\* ***x*** __y__ <!-- c --> <?p?> <![CDATA[x]]>\n\n    code\n***\n"
    yield "\u202e\u2028\x1b[31mred\x1b]0;t\x07 \u00e9 \U0001f30a\x00".encode()


def drawing(data: bytes) -> None:
    """A text in pieces, drawn as it comes: the parts are the text, and each is harmless."""
    source = Source(data)
    live, kind, size = source.byte() % 4 != 0, source.one_of(("text", "text", "thinking")), 1 + source.byte() % 40
    text = source.rest().decode("utf-8", "replace")
    sent: dict[Any, Any] = {}
    output = LiveOutput(lambda message: sent.__setitem__(message.display_id or id(message), message), live=live)
    now = 0.0
    for at in range(0, len(text), size):
        now += 0.05
        output.event(_delta(kind, text[at : at + size]), now)
        if (due := output.due()) is not None and due <= now:
            output.tick(now)
    output.close(now + 1)
    for message in sent.values():
        if "text/html" in message.data:
            check_html(message.data["text/html"])
    plain = text == clean(text) == mask(text)
    if kind == "text" and plain and not re.search(r"\s\Z|\A\s", text):
        parts = [message.data["text/plain"] for message in sent.values() if _kind(message) == "text"]
        assert "".join(parts) == text or not live, (parts, text)


def _kind(message: Any) -> str:
    return str(message.metadata.get("mmsp", {}).get("kind")) if message.metadata else ""


def _delta(kind: str, piece: str) -> dict[str, Any]:
    return {"type": "event", "event": {"content_items": [{"type": f"{kind}.delta", kind: piece}]}}


def drawing_seeds() -> Iterable[bytes]:
    for seed in markdown_seeds():
        yield b"\x01\x00\x05" + seed
        yield b"\x00\x02\x09" + seed


def fences(data: bytes) -> None:
    """Code in an answer is found, JSON in it read or refused in one line."""
    text = data.decode("utf-8", "surrogateescape")
    assert all(block.code in text or "\n" in block.code for block in code_blocks(text))
    with contextlib.suppress(ValueError):
        parse_json(text)


def fences_seeds() -> Iterable[bytes]:
    yield b'Here:\n```json title\n{"a": [1]}\n```\n~~~~\nx\n~~~\n~~~~\n- ```py\n  x\n  ```\n'
    yield b"[" * 2000
