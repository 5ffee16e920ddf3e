"""What was displayed, as text for a model."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb.notebook.shown import text_of

BARE = "<IPython.core.display.HTML object>"


@pytest.mark.parametrize(
    ("bundle", "text"),
    [
        ({"text/plain": "Slider(value=3)", "text/html": "<b>x</b>"}, "Slider(value=3)"),
        ({"text/plain": BARE, "text/html": "<p>One &amp; two</p><p>three"}, "One & two\nthree"),
        ({"text/plain": BARE, "text/html": "<style>p{}</style><img alt='a map' src=x>"}, "(image: a map)"),
        ({"text/plain": BARE, "text/html": "<ul><li>a\n  b<li>c</ul>"}, "a b\nc"),
        ({"text/plain": BARE, "text/markdown": "**bold**"}, "**bold**"),
        ({"text/plain": BARE, "application/json": {"a": 1}}, '(displayed application/json: {"a": 1})'),
        ({"text/plain": BARE, "image/png": "iVBO"}, "(displayed an image)"),
        ({"text/plain": "<Figure size 64x48>", "image/png": "iVBO"}, "(displayed an image: <Figure size 64x48>)"),
        ({"text/plain": BARE, "image/svg+xml": "<svg/>"}, "(displayed a drawing)"),
        ({"text/plain": BARE, "text/html": "<div></div>"}, f"(displayed {BARE}, as text/html)"),
        ({"text/html": "<![unclosed <b"}, "(displayed something, as text/html)"),
        ({}, "(displayed something)"),
    ],
)
def test_a_display_says_in_text_what_a_reader_sees(bundle: dict[str, Any], text: str) -> None:
    assert text_of(bundle) == text


def test_a_long_document_is_looked_through_only_so_far() -> None:
    assert len(text_of({"text/html": "<p>" + "x" * 3_000_000})) <= 500_000
