"""A typed answer as its fields, from its first character on."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hostile import VECTORS

from mmsp_nb.notebook.fields import fields_html
from mmsp_nb.notebook.formats import Shaped
from mmsp_nb.notebook.output import LiveOutput

ANSWER = {
    "port": "Brest", "range": 4.2, "spring": True, "highs": [5, 17], "note": None,
    "coast": {"bays": ["Rade de Brest", "Douarnenez"], "depth": 12},
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.elements = "", []  # type: ignore[var-annotated]
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def test_every_field_has_its_name_its_value_and_its_kind() -> None:
    page = Page(fields_html(json.dumps(ANSWER)) or "")
    for said in (
        "port text Brest",
        "range number 4.2",
        "spring yes or no yes",
        "highs list of 2 5, 17",
        "Rade de Brest",
    ):
        assert said in page.text
    assert page.elements.count("table") == 2
    assert "none" in page.text


def test_fields_come_one_after_the_other_and_never_go() -> None:
    text = json.dumps(ANSWER)
    seen = 0
    for end in range(len(text) + 1):
        html = fields_html(text[:end], running=True) or ""
        rows = Page(html).elements.count("th")
        assert rows >= seen
        seen = rows
    assert seen == 8
    assert "Bre" in (fields_html('{"port": "Bre', running=True) or "")


def test_a_type_that_is_no_object_is_its_value() -> None:
    assert Page(fields_html('{"value": [{"a": 1}, {"a": 2}]}') or "").elements.count("li") == 2


@pytest.mark.parametrize("text", ["", "no JSON", "{", "{}", '{"'])
def test_what_has_no_fields_yet_is_nothing(text: str) -> None:
    assert fields_html(text, running=True) is None


def test_what_is_large_or_deep_is_bounded() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": deep}
    for value in (deep, {"a": "x" * 100_000}, {"a": list(range(100_000))}, {f"n{n}": n for n in range(10_000)}):
        html = fields_html(json.dumps(value)) or ""
        assert 0 < len(html) < 30_000


def test_nothing_of_it_runs_and_the_json_is_stored_exactly() -> None:
    text = json.dumps({"first": VECTORS[:50], VECTORS[0]: VECTORS[1]})
    sent: list[Any] = []
    output = LiveOutput(sent.append, stretch=lambda new_id: Shaped(new_id, form="fields"))
    for at in range(0, len(text), 40):
        item = {"type": "text.delta", "text": text[at : at + 40]}
        output.event({"type": "event", "event": {"content_items": [item]}}, at / 400)
        output.tick(at / 400)
    output.close(99.0)
    assert len(sent) > 5
    for message in sent:
        assert set(Page(message.data["text/html"]).elements) <= {
            "div", "style", "span", "table", "tbody", "tr", "th", "td", "ol", "li", "pre",
        }  # fmt: skip
    assert sent[-1].data["text/plain"] == text
