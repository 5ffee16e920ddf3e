from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jupyter_driver import Jupyter


@pytest.fixture(scope="session")
def chromium() -> str:
    spec = importlib.util.spec_from_file_location("install", Path(__file__).parents[2] / "scripts" / "install.py")
    assert spec is not None and spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    found = install.find_chromium()
    if found is None:
        pytest.skip("there is no Chromium here: install it, or name one with CHROMIUM=/path/to/it")
    return found


@pytest.fixture(scope="module")
def jupyter(chromium: str) -> Iterator[Callable[[str, str], Jupyter]]:
    """``jupyter(app, theme)``: a running server with a browser; made once for each test module."""
    made: dict[tuple[str, str], Jupyter] = {}
    with ExitStack() as stack:

        def get(app: str = "lab", theme: str = "light") -> Jupyter:
            if (app, theme) not in made:
                made[app, theme] = stack.enter_context(Jupyter(chromium, app, theme, MMSP_MODEL="demo"))
            return made[app, theme]

        yield get
