"""Tools that come with the package, off by default: a look at variables, running code, reading files of a folder.

They know no notebook: the namespace, the way to run code and the folder are handed in. ``%mmsp tools add`` knows them
as ``variables``, ``look_at``, ``run_code``, ``list_files`` and ``read_file``.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from mmsp_nb.masking import mask_keys
from mmsp_nb.tools.definition import Tool
from mmsp_nb.tools.views import View, cut, view

__all__ = ["code_tool", "file_tools", "namespace_tools"]

MAX_NAMES = 200
MAX_FILES = 500
MAX_FILE = 20_000
"""Characters of a file that one call reads."""

_SECRET = ("KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIAL")


def namespace_tools(namespace: Mapping[str, Any], *, hidden: Callable[[str], bool] | None = None) -> list[Tool]:
    """``variables`` and ``look_at``: read-only looks at ``namespace``.

    Args:
        namespace: The variables, by name; always looked at as they are now.
        hidden: Says of which names nothing is told. Names that begin with an underscore, modules and names that sound
            like secrets are never shown.
    """

    def names() -> list[str]:
        found = []
        for name, value in list(namespace.items()):
            if name.startswith("_") or isinstance(value, types.ModuleType) or _sounds_secret(name):
                continue
            if hidden is None or not hidden(name):
                found.append(name)
        return found

    def variables() -> str:
        """Lists the variables of this notebook: names, types and sizes. Reads only."""
        known = names()
        lines = [f"{name}: {_outline(namespace[name])}" for name in known[:MAX_NAMES]]
        if len(known) > MAX_NAMES:
            lines.append(f"(and {len(known) - MAX_NAMES} more)")
        return "\n".join(lines) or "There are no variables."

    def look_at(variable: Annotated[str, "its name, without anything behind it"]) -> View:
        """Shows one variable of this notebook, bounded: of a table its columns and first rows. Reads only."""
        if variable not in names():
            raise LookupError(f"there is no variable {variable!r} to look at; variables() lists them")
        shown = view(namespace[variable])
        return View(mask_keys(f"{variable}: {_outline(namespace[variable])}\n{shown.text}"), shown.images)

    return [Tool.of(variables), Tool.of(look_at)]


def code_tool(run: Callable[[str], Any]) -> Tool:
    """``run_code``: runs Python where the user's variables are. It always asks first, whatever a policy allows.

    Args:
        run: Runs the code and returns the value of its last expression, or raises.
    """

    def run_code(code: Annotated[str, "Python source"]) -> Any:
        """Runs Python in this notebook's kernel and returns the last expression's value and what was printed."""
        return run(code)

    return Tool.of(run_code, ask="always", capture=True)


def file_tools(folder: str | Path) -> list[Tool]:
    """``list_files`` and ``read_file``: text files below ``folder``, nothing above or beside it, nothing hidden."""
    root = Path(folder).resolve()

    def inside(path: str) -> Path:
        found = (root / path).resolve()  # links are followed first: what counts is where they lead
        if not found.is_relative_to(root) or any(part.startswith(".") for part in found.relative_to(root).parts):
            raise PermissionError(f"{path!r} is not in the notebook's folder, or hidden")
        if _sounds_secret(found.name):
            raise PermissionError(f"{path!r} sounds like a secret")
        return found

    def list_files(pattern: Annotated[str, "for instance *.csv or data/**/*.json"] = "*") -> list[str]:
        """Lists the files of the notebook's folder that match a pattern. Reads only."""
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise PermissionError("patterns stay in the notebook's folder")
        found = []
        for path in itertools.islice(root.glob(pattern), 20 * MAX_FILES):
            relative = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in relative.parts):
                found.append(f"{relative.as_posix()} ({path.stat().st_size:,} bytes)")
        return sorted(found)[:MAX_FILES]

    def read_file(path: Annotated[str, "relative to the notebook's folder"], start: int = 0) -> str:
        """Reads a text file of the notebook's folder, from a character on, at most 20,000 characters. Reads only."""
        found = inside(path)
        if not found.is_file():
            raise FileNotFoundError(f"there is no file {path!r}")
        data = found.read_bytes()[:50_000_000]
        if b"\0" in data[:8_000]:
            return f"({path} is no text: {len(data):,} bytes)"
        text = data.decode("utf-8", "replace")
        piece = text[max(start, 0) :][:MAX_FILE]
        rest = len(text) - max(start, 0) - len(piece)
        note = f"\n(the file goes on: {rest:,} of {len(text):,} characters, from start={max(start, 0) + len(piece)})"
        return mask_keys(piece) + (note if rest > 0 else "")

    return [Tool.of(list_files), Tool.of(read_file)]


def _sounds_secret(name: str) -> bool:
    upper = name.upper()
    return any(word in upper for word in _SECRET) or upper in (".ENV", "ID_RSA")


def _outline(value: Any) -> str:
    """Type and size of a value in a few words; no method of the value is trusted to be cheap or to work."""
    kind = type(value)
    name = (
        kind.__name__
        if kind.__module__ in ("builtins", "__main__")
        else f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    )
    if isinstance(value, type):
        return f"class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"function {value.__name__}"
    if value is None or isinstance(value, bool | int | float):
        return f"{name} {value!r}"[:80]
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    if frame is not None and isinstance(value, frame):
        columns = ", ".join(f"{column} ({dtype})" for column, dtype in list(value.dtypes.items())[:12])
        more = ", ..." if value.shape[1] > 12 else ""
        return cut(f"{name}, {value.shape[0]:,} rows, {value.shape[1]:,} columns: {columns}{more}", 400)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(each, int) for each in shape):
        return f"{name} of shape {shape}"
    if isinstance(value, str | bytes | list | tuple | dict | set | frozenset):
        return f"{name} of length {len(value):,}"
    return name
