"""Cuts and provisional ends of a Markdown text that is still being written."""

from __future__ import annotations

import html
import itertools
import re

import pytest

from mmsp_nb.notebook.blocks import BETWEEN_BLOCKS, IN_BLOCK, provisional, splits
from mmsp_nb.notebook.markdown import to_html

DOCUMENT = r"""# Heading with **bold** and `code`

A paragraph with *emphasis*, **strong *nested* text**, ~~gone~~, a [link to a place](https://example.com/a_b_c "title")
and ![pic](https://x.org/p.png); plus <https://auto.example.org/x> and https://bare.example.com/foo_bar_baz.
snake_case_name and 2 * 3 * 4 = 24, `a * b`, ``tick ` inside``.

- one **bold item**
- two `code` item
  - nested *deep* item

    ```python
    def f(x):
        return x ** 2  # power
    ```
- [ ] task
- [x] done

1. first
2. second
   continued **here**
3. third

| Name | Value | Note |
|:-----|------:|:----:|
| **alpha** | 1 | `x` |
| beta | 22 | [link](https://foo.bar) |
| gamma<br>delta | 3 | end |

> Quote with **bold** text
> and more *emphasis*

Math \(x^2 + y_1\) and $e = mc^2$ costs $5 and $10.

\[
\int_0^1 x\,dx = \frac{1}{2}
\]

```js
const a = `template ${x}`;
/* **not bold** */
```

***

Final **_both_** and ***triple*** words, __under__ done.
"""


def shown(prefix: str) -> str:
    markdown, raw = provisional(prefix)
    text = re.sub(r"</?(?:td|th|p|li|div|h1)\b[^>]*>", " ", to_html(markdown)) + html.escape(raw)
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def expected_words(prefix: str) -> list[str]:
    """What a reader has to see of ``prefix``: its words without addresses, fence lines and list markers."""
    text = re.sub(r"!?\[([^\]\[]*)\]\([^)\n]*\)?", r"\1 ", prefix)
    text = re.sub(r"(?m)^\s*(?:```|~~~).*$", "", text)
    text = re.sub(r"(?m)^(\s*)\d+\.?(?:\s|$)", r"\1", text)
    text = re.sub(r"<br>", " ", text)
    text = re.sub(r"\[[ xX]\]\s|<(?:https?:|b)[^>\s]*$|</?$", "", text)
    return re.findall(r"\w+", text.replace("_", " "))


@pytest.mark.parametrize("block", range(len(DOCUMENT.split("\n\n"))))
def test_no_word_is_hidden_and_no_mark_is_bare_wherever_the_text_stands(block: int) -> None:
    blocks = DOCUMENT.split("\n\n")
    start = len("\n\n".join(blocks[:block]))
    for end in range(start + 1, start + len(blocks[block]) + 3):
        check(DOCUMENT[:end])


def check(prefix: str) -> None:
    text = shown(prefix)
    seen = iter(re.findall(r"\w+", text.replace("_", " ")))
    missing = [word for word in expected_words(prefix)[:-1] if not any(word == other for other in seen)]
    assert not missing
    outside_code = re.sub(r"<pre.*?</pre>|<code>.*?</code>", "", to_html(provisional(prefix)[0]), flags=re.S)
    visible = re.sub(r"<[^>]+>", "", outside_code)
    assert not re.search(r"\*\*|\]\(|\|--|`|~~", visible), visible[-80:]


def test_a_complete_text_is_left_as_it_is() -> None:
    markdown, raw = provisional(DOCUMENT)
    assert to_html(markdown) == to_html(DOCUMENT)
    assert raw == ""


def test_cuts_between_blocks_do_not_change_the_picture() -> None:
    cuts = [split.at for split in splits(DOCUMENT) if split.kind == BETWEEN_BLOCKS]
    assert len(cuts) >= 9
    bounds = [0, *cuts, len(DOCUMENT)]
    pieces = [DOCUMENT[a:b] for a, b in itertools.pairwise(bounds)]
    assert "".join(pieces) == DOCUMENT
    assert "".join(to_html(piece) for piece in pieces) == to_html(DOCUMENT)


def test_a_list_with_blank_lines_is_not_cut_invisibly() -> None:
    text = "1. one\n\n   more\n\n2. two\n\ntext\n"
    assert [(split.at, split.kind) for split in splits(text)] == [
        (text.index("2."), IN_BLOCK),
        (text.index("text"), BETWEEN_BLOCKS),
    ]


def test_a_code_block_is_opened_again_after_a_cut() -> None:
    text = "Intro\n\n```python\na = 1\n\nb = 2\n```\n\nEnd\n"
    inside = [split for split in splits(text) if split.reopen]
    assert [split.reopen for split in inside] == ["```python\n"] * 4
    after = text[inside[1].at :]
    assert to_html(inside[1].reopen + after).startswith("<pre")
    assert [split.at for split in splits(after, inside[1].reopen) if split.kind == BETWEEN_BLOCKS] == [
        after.index("End")
    ]


def test_a_table_repeats_its_head_after_a_cut() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"
    cut = splits(text)[-1]
    assert (cut.kind, cut.reopen) == (IN_BLOCK, "| a | b |\n|---|---|\n")
    assert to_html(cut.reopen + text[cut.at :]).count("<tr>") == 2


@pytest.mark.parametrize("text", ["$$\na\n\nb", "\\[\nx\n\n- y", "\\begin{align}\na\n\nb"])
def test_an_open_formula_is_neither_cut_nor_typeset(text: str) -> None:
    assert splits(text) == []
    markdown, raw = provisional("Before.\n\n" + text)
    assert markdown == "Before.\n\n"
    assert raw == text


def test_a_half_inline_formula_is_shown_as_code() -> None:
    assert "<code>\\(x^2 + y</code>" in to_html(provisional("So \\(x^2 + y")[0])


@pytest.mark.parametrize(
    ("text", "ends_with"),
    [
        ("a **b", "<strong>b</strong>"),
        ("a *b", "<em>b</em>"),
        ("a ~~b", "<del>b</del>"),
        ("a `b", "<code>b</code>"),
        ("a [b](https://exa", "b"),
        ("a ![b](https://exa", "b"),
        ("a **b *c", "<strong>b <em>c</em></strong>"),
        ("a **", "a"),
        ("a **b*", "<strong>b</strong>"),
        ("5 * 3", "5 * 3"),
        ("| a", "<tr><th>a</th></tr></thead>\n<tbody></tbody>\n</table></div>"),
        ("Here:\n| a | b", "<tr><th>a</th><th>b</th></tr></thead>\n<tbody></tbody>\n</table></div>"),
        ("snake_case", "snake_case"),
    ],
)
def test_what_is_open_is_closed_provisionally(text: str, ends_with: str) -> None:
    assert to_html(provisional(text)[0]).strip().removesuffix("</p>").endswith(ends_with)
