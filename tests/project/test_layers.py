"""The arrows between the layers, as docs/architecture.md draws them, hold in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "mmsp_nb"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Who may import a library that has weight: folders or modules below mmsp_nb.
ONLY = {
    "IPython": ("notebook",),
    "ipywidgets": ("notebook",),
    "anywidget": ("notebook",),
    "ipykernel": ("notebook",),
    "httpx": ("transport",),
    "xllamacpp": ("local",),
    "opentelemetry": ("telemetry.py",),
}
# What a layer may not know of us.
BELOW = {
    "protocol": ("providers", "transport", "client", "agent", "tools", "conversation", "notebook", "local", "testing"),
    "providers": ("client", "agent", "tools", "conversation", "notebook", "testing"),
    "transport": ("client", "agent", "tools", "conversation", "notebook", "local", "testing"),
    "client.py": ("agent", "tools", "conversation", "notebook", "testing"),
    "tools": ("agent", "conversation", "notebook", "testing"),
    "agent.py": ("conversation", "notebook", "testing"),
    "telemetry.py": ("providers", "transport", "client", "agent", "tools", "conversation", "notebook", "testing"),
    "atomic.py": ("providers", "transport", "client", "agent", "tools", "conversation", "notebook", "testing"),
    "conversation.py": ("notebook", "testing"),
}


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it, but not for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for statement in branch.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("library", ONLY)
def test_a_heavy_library_is_imported_in_one_layer_only(library: str) -> None:
    strangers = [
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] not in ONLY[library]
        and any(name.partition(".")[0] == library for name in imports(path))
    ]
    assert strangers == []


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_knows_nothing_of_those_above_it(layer: str) -> None:
    above = {f"mmsp_nb.{name}" for name in BELOW[layer]}
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] == layer
        for name in imports(path)
        if ".".join(name.split(".")[:2]) in above
    ]
    assert wrong == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_stays_small_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def test_no_two_modules_of_the_tests_share_a_name() -> None:
    """They are imported by name alone, so that the second would be the first."""
    shared = ("conftest.py", "__init__.py")
    names = [path.name for path in (PACKAGE.parent / "tests").rglob("*.py") if path.name not in shared]
    assert sorted({name for name in names if names.count(name) > 1}) == []
