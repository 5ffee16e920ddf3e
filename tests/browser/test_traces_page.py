"""The page of traces on loopback: it follows a trace and a folder that are being written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from mmsp_nb import tracing
from mmsp_nb.traces import TracePage

pytestmark = pytest.mark.browser


def messages(count: int) -> list[Any]:
    said: list[Any] = []
    for n in range(count):
        said.append({"role": "user", "content_items": [{"type": "text.done", "text": f"question {n}"}]})
        said.append({"role": "assistant", "content_items": [{"type": "text.done", "text": f"answer {n}"}]})
    return said


def test_a_trace_and_a_list_that_are_written_meanwhile(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    tracing.save("run/1", messages(1), {}, "some-model")
    with TracePage(tmp_path) as served:
        page = browser.new_page()
        errors: list[Any] = []  # a method of a list is no handler for Playwright
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(served.url)
        page.get_by_role("button", name="run/1").click()
        expect(page.locator(".row.answer")).to_have_count(1)
        tracing.save("run/1", messages(3), {}, "some-model")
        tracing.save("run/2", messages(1), {}, "some-model")
        expect(page.locator(".row.answer")).to_have_count(3, timeout=10_000)
        expect(page.locator(".row.answer").last).to_contain_text("answer 2")
        other = page.get_by_role("button", name="run/2")
        expect(other).to_be_visible(timeout=10_000)
        expect(page.get_by_role("button", name="run/1")).to_have_attribute("aria-current", "true")
        other.click()
        expect(page.locator(".row.answer")).to_have_count(1)
        assert errors == []
        page.close()
