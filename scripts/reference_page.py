"""Writes docs/reference.md from the code: `reference_page.py [--check]`."""

from __future__ import annotations

import inspect
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any, is_typeddict

import mmsp_nb
import mmsp_nb.testing
from mmsp_nb.notebook.magics import MMSPMagics
from mmsp_nb.notebook.options import OPTIONS, SUBCOMMANDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"

HEAD = """# Reference

*This page is generated from the code by `python scripts/reference_page.py`; a test compares them.*
"""
HIDDEN = ("__version__", "load_ipython_extension", "unload_ipython_extension")


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is not what the code says: run python scripts/reference_page.py", file=sys.stderr)
        return 1
    return 0


def page() -> str:
    parts = [
        HEAD,
        "## In a notebook\n",
        "### `%%mmsp [options]`\n",
        "The prompt is the text below it, with `{{expressions}}`.\n",
    ]
    parts.append(table("option", ((f"`{name}`", cell(option.about)) for name, option in OPTIONS.items())))
    parts += [
        "### `%mmsp SUBCOMMAND`\n",
        table("subcommand", ((f"`{n}`", cell(about)) for n, about in SUBCOMMANDS.items())),
    ]
    parts.append("### `%config MMSPMagics.NAME = value`\n")
    settings = sorted(MMSPMagics.class_own_traits(config=True).items())
    parts.append(table("setting", ((f"`{name}`", cell(str(trait.help))) for name, trait in settings)))
    for title, module in (("mmsp_nb", mmsp_nb), ("mmsp_nb.testing", mmsp_nb.testing)):
        parts.append(f"## `{title}`\n")
        for name in sorted({*module.__all__, *module._MODULE_OF}, key=lambda name: (name.lower(), name)):
            if name not in HIDDEN:
                parts.append(entry(name, getattr(module, name)))
    return "\n".join(parts)


def entry(name: str, value: Any) -> str:
    """A public name: signature, docstring, methods."""
    lines = [f"### `{name}`\n"]
    if inspect.ismodule(value) or not callable(value):
        return "\n".join([*lines, prose(value)])
    if isinstance(value, type) and issubclass(value, Enum):
        return "\n".join([*lines, prose(value), "Values: " + ", ".join(f"`{member.value}`" for member in value) + "\n"])
    if is_typeddict(value):
        fields = ", ".join(f"`{field}`" for field in value.__annotations__)
        return "\n".join([*lines, prose(value), f"Keys: {fields}\n"])
    if isinstance(value, type) and issubclass(value, BaseException):
        fields = ", ".join(f"`{field}`" for field in getattr(value, "fields", {}))
        return "\n".join([*lines, prose(value), *([f"Attributes: {fields}\n"] if fields else [])])
    lines += [f"```python\n{signature(name, value)}\n```\n", prose(value)]
    if isinstance(value, type):
        lines += [method(member, found) for member, found in members(value)]
    return "\n".join(lines)


def members(value: type) -> list[tuple[str, Any]]:
    """The public methods and properties that have something to say, in the order of the code."""
    found: dict[str, Any] = {}
    for owner in reversed(value.__mro__):
        if owner.__module__.startswith("mmsp_nb"):
            found |= {name: member for name, member in vars(owner).items() if not name.startswith("_")}
    plain = {name: getattr(member, "__func__", member) for name, member in found.items()}
    return [(name, member) for name, member in plain.items() if documented(member)]


def documented(member: Any) -> bool:
    is_member = isinstance(member, property) or inspect.isfunction(member)
    return is_member and bool(inspect.getdoc(member))


def method(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"`.{name}`: {first_paragraph(member)}\n"
    return f"`.{signature(name, member, short=True)}`: {first_paragraph(member)}\n"


def signature(name: str, value: Any, *, short: bool = False) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parameters = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    if short:
        empty = inspect.Parameter.empty
        parameters = [p.replace(annotation=empty) for p in parameters]
        found = found.replace(return_annotation=empty)
    text = f"{name}{found.replace(parameters=parameters)}"
    text = text if short else text.replace("'", "")
    # defaults that are objects have an address in their repr
    return re.sub(r"<[^<>]* at 0x[0-9a-f]+>|<(?:function|class|object)[^<>]*>", "...", text)


def first_paragraph(value: Any) -> str:
    return cell((inspect.getdoc(value) or "").split("\n\n")[0])


def prose(value: Any) -> str:
    """A docstring as it is, its sections and code as blocks."""
    text = inspect.getdoc(value) or ""
    if is_typeddict(value) and text.startswith("dict("):
        text = ""
    blocks = []
    for block in text.split("\n\n"):
        head, _, rest = block.partition("\n")
        if re.fullmatch(r"(Args|Attributes|Raises|Returns|Raises \(.*\)):", head):
            blocks.append(f"{head}\n\n```text\n{inspect.cleandoc(rest)}\n```")
        elif block.startswith("    ") or re.match(r"[=\-]{3,}|[├└]", block.strip()):
            blocks.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            blocks.append(block.replace("``", "`").removesuffix("::").removesuffix(":\n") if block != "::" else "")
    return "\n\n".join(filter(None, blocks)) + "\n"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def table(title: str, rows: Any) -> str:
    return "\n".join([f"| {title} | |", "|---|---|", *(f"| {name} | {about} |" for name, about in rows), ""])


if __name__ == "__main__":
    sys.exit(main())
