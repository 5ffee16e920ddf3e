import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mmsp_nb


def test_the_names_for_type_checkers_are_those_that_are_loaded():
    tree = ast.parse(Path(mmsp_nb.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    checked = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert checked == {name: f"mmsp_nb.{module}" for name, module in mmsp_nb._MODULE_OF.items()}
    assert {*mmsp_nb.__all__, "map"} == set(checked) | {
        "__version__",
        "allow_nested_asyncio",
        "load_ipython_extension",
        "unload_ipython_extension",
    }


def test_a_star_does_not_hide_the_map_of_python():
    names = {}
    exec("from mmsp_nb import *", names)
    assert "map" not in names and "amap" in names and "map" in dir(mmsp_nb)


def test_every_error_class_is_public():
    from mmsp_nb.protocol import errors

    classes = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert classes <= set(mmsp_nb.__all__)


@pytest.mark.parametrize("name", ["load_ipython_extension", "unload_ipython_extension"])
def test_the_extension_is_that_of_the_notebook(monkeypatch, name):
    from mmsp_nb import notebook

    seen = []
    monkeypatch.setattr(notebook, name, seen.append, raising=False)
    getattr(mmsp_nb, name)("shell")
    assert seen == ["shell"]


def test_nested_asyncio_only_when_asked_for():
    code = """
import asyncio, mmsp_nb

async def main():
    return "inner"

async def cell():
    try:
        coroutine = main()
        asyncio.run(coroutine)
    except RuntimeError:
        coroutine.close()
        print("refused")
    mmsp_nb.allow_nested_asyncio()
    print(asyncio.run(main()))

asyncio.run(cell())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["refused", "inner"], done.stderr


def test_an_event_loop_that_cannot_be_nested_is_told_in_one_line(monkeypatch):
    class Patch:
        @staticmethod
        def apply():
            raise ValueError("Can't patch loop of type X")

    monkeypatch.setitem(sys.modules, "nest_asyncio2", Patch)
    with pytest.raises(RuntimeError, match="await main"):
        mmsp_nb.allow_nested_asyncio()
