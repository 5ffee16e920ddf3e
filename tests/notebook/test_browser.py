"""Hostile text in a real browser: nothing of it runs, nothing of it is fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from hostile import VECTORS

from mmsp_nb.notebook.render import text_html, thinking_html, wrap

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_no_vector_runs_and_nothing_is_fetched(browser: Any) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: dialog.dismiss())
    for vector in VECTORS:
        safe = vector.encode("utf-8", "replace").decode()
        page.set_content(f"<body>{wrap(text_html(safe))}{wrap(thinking_html(safe, running=True))}</body>")
        for element in page.query_selector_all("summary, a, input, div, code"):
            element.dispatch_event("mouseover")
            element.dispatch_event("focus")
        assert page.evaluate("window.hacked") is None, vector
        schemes = page.evaluate("[...document.querySelectorAll('a')].map(a => a.protocol)")
        assert set(schemes) <= {"http:", "https:", "mailto:"}, vector
        assert page.evaluate("document.querySelectorAll('script, img, iframe, object, embed, link, form').length") == 0
    assert requests == []
    page.close()


def test_the_probe_itself_would_notice(browser: Any) -> None:
    page = browser.new_page()
    page.set_content("<body><img src=x onerror='window.hacked=1'></body>")
    page.wait_for_function("window.hacked === 1")
    page.close()
