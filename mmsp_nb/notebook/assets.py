"""The files of the folder ``static``: as text, and put together as one module for those who take a single string.

A widget's code is one string, and a page should load one file. `bundle` puts a module and all that it imports into one
scope, in order; the names at the top of these modules are therefore different from each other, which a test checks.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

__all__ = ["ASSETS", "asset", "bundle", "static_text"]

ASSETS = {"/inspector.css": "text/css", "/traces.js": "text/javascript", "/traces.css": "text/css"}
"""What a server of the page hands out without a token: it is the same everywhere."""

_IMPORT = re.compile(r'^import (?P<names>\w+|\{[^}]*\}) from "\./(?P<file>[\w./-]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async |)(?:function|class|const|let)\b)", re.MULTILINE)
_MAP = re.compile(r"\n//# sourceMappingURL=.*\s*\Z")


@cache
def static_text(name: str) -> str:
    """A file of the folder ``static``."""
    return resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8")


@cache
def bundle(name: str) -> str:
    """The module ``name`` with all that it imports, as one module without imports.

    A file of others (in ``vendor``) stays as it was published, within a function that gives it the surroundings of a
    CommonJS module.
    """
    parts: list[str] = []
    _gather(name, parts, set())
    return "\n".join(parts)


def _gather(name: str, parts: list[str], seen: set[str]) -> None:
    text = static_text(name)
    for found in _IMPORT.finditer(text):
        file, names = found["file"], found["names"]
        if file in seen:
            continue
        seen.add(file)
        if file.startswith("vendor/"):
            source = _MAP.sub("", static_text(file))
            parts.append(
                f"const {names} = ((module) => {{\n((exports, define) => {{\n{source}\n}})(module.exports);\n"
                "return module.exports;\n})({ exports: {} });"
            )
        else:
            _gather(file, parts, seen)
            parts[-1] = _EXPORT.sub("", parts[-1])
    parts.append(_IMPORT.sub("", text))


def asset(path: str) -> tuple[bytes, str]:
    """Content and type of a file that the page of traces consists of; scripts come with all that they import."""
    name = path.lstrip("/")
    text = bundle(name) if name.endswith(".js") else static_text(name)
    return text.encode("utf-8"), ASSETS.get(path, "text/html")
