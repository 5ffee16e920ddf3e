from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jupyter_driver import FLAGS, Jupyter, Notebook
from playwright.sync_api import Browser, sync_playwright

from mmsp_nb.testing import FakeProvider

Open = Callable[..., Notebook]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    spec = importlib.util.spec_from_file_location("install", Path(__file__).parents[2] / "scripts" / "install.py")
    assert spec is not None and spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    found = install.find_chromium()
    if found is None:
        pytest.skip("there is no Chromium here: install it, or name one with CHROMIUM=/path/to/it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    """What ``%%mmsp -m fake --client-type openai-chat`` asks in a notebook."""
    with FakeProvider() as running:
        yield running


@pytest.fixture(scope="module")
def servers(browser: Browser, provider: FakeProvider) -> Iterator[Callable[[str, str], Jupyter]]:
    """``servers(app, theme)``: a Jupyter server with a browser, each made once for a module of tests."""
    made: dict[tuple[str, str], Jupyter] = {}
    env = {"MMSP_MODEL": "demo", "OPENAI_BASE_URL": provider.url("/v1"), "OPENAI_API_KEY": "test-key-of-the-fake"}
    with ExitStack() as stack:

        def get(app: str, theme: str) -> Jupyter:
            if (app, theme) not in made:
                made[app, theme] = stack.enter_context(Jupyter(browser, app, theme, **env))
            return made[app, theme]

        yield get


@pytest.fixture
def open_notebook(servers: Callable[[str, str], Jupyter], provider: FakeProvider) -> Iterator[Open]:
    """``open_notebook(*cells, app="lab", theme="light")``; closed, with its kernel, when the test is over."""
    opened: list[Notebook] = []
    provider.reset()

    def get(*cells: str, app: str = "lab", theme: str = "light") -> Notebook:
        opened.append(servers(app, theme).notebook(*cells))
        return opened[-1]

    yield get
    for notebook in opened:
        notebook.close()
