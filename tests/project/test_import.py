"""`import mmsp_nb` is light, and gives what it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mmsp_nb

HEAVY = ("IPython", "ipykernel", "ipywidgets", "anywidget", "traitlets", "httpx", "pydantic", "mistune", "asyncio")


def fresh(code: str) -> str:
    """What ``code`` prints in a new interpreter, without measuring coverage: that would load modules and take time."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env).stdout


def seconds(code: str) -> float:
    """The best of five new interpreters, which have warm files then."""

    def once() -> float:
        started = time.perf_counter()
        fresh(code)
        return time.perf_counter() - started

    return min(once() for _ in range(5))


def loaded_by(code: str) -> list[str]:
    """Which of the heavy modules ``code`` loads in a new interpreter."""
    return json.loads(fresh(f"{code}; import sys, json; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"))


def test_importing_the_package_loads_no_notebook_no_widgets_and_no_network() -> None:
    assert loaded_by("import mmsp_nb") == []


def test_importing_the_package_costs_little_next_to_its_dependencies() -> None:
    bare = seconds("pass")
    ours = seconds("import mmsp_nb") - bare
    dependencies = seconds("import pydantic, httpx") - bare
    print(f"import mmsp_nb {ours * 1000:.0f} ms, import pydantic, httpx {dependencies * 1000:.0f} ms")
    assert ours < dependencies / 2


def test_the_client_needs_no_notebook() -> None:
    loaded = loaded_by("from mmsp_nb import AutoLLMClient, Agent, Conversation, tool")
    assert not {"IPython", "ipykernel", "ipywidgets", "anywidget", "traitlets"} & set(loaded)


@pytest.mark.parametrize("name", mmsp_nb.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(mmsp_nb, name)
    assert name in dir(mmsp_nb)
    if callable(value):
        assert (value.__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="Conversatoin"):
        mmsp_nb.Conversatoin  # noqa: B018


def test_every_module_imports_by_itself() -> None:
    root = Path(mmsp_nb.__file__).parent
    paths = [path.relative_to(root).with_suffix("") for path in root.rglob("*.py") if path.name != "__main__.py"]
    names = sorted(".".join(("mmsp_nb", *path.parts)).removesuffix(".__init__") for path in paths)
    code = f"""
import importlib, sys
for name in {names}:
    for loaded in [module for module in sys.modules if module.partition(".")[0] == "mmsp_nb"]:
        del sys.modules[loaded]
    importlib.import_module(name)
    print(name)
"""
    assert fresh(code).split() == names
