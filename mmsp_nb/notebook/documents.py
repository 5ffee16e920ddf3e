"""A conversation as a document for the inspector: a name for it, a free path, the file. `exports` writes the text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mmsp_nb.exports import FORMATS, export
from mmsp_nb.protocol.errors import UnsupportedOperationError

__all__ = ["SIZE", "document", "free_path", "shown_path", "stem", "write"]

SIZE = 8_000_000
"""Characters that are handed to a page at most; what is larger is written to a file."""

TYPES = {
    "markdown": "text/markdown",
    "html": "text/html",
    "notebook": "application/x-ipynb+json",
    "python": "text/x-python",
}
MANY = 10_000


def stem(conversation: Any) -> str:
    """A file name without its ending: the conversation's name, of letters that every file system takes."""
    name = re.sub(r"[^\w-]+", "-", str(conversation.name or "")).strip("-_")[:60]
    return name or "conversation"


def document(conversation: Any, form: str) -> tuple[str, str, str]:
    """The branch in use as a file's name, MIME type and text. UnsupportedOperationError for an unknown format."""
    if form not in FORMATS:
        raise UnsupportedOperationError(f"cannot export as {str(form)[:20]!r}", operation="export")
    return stem(conversation) + FORMATS[form], TYPES[form], export(conversation, format=form)


def free_path(folder: Path, name: str, suffix: str) -> Path:
    """A path in ``folder`` where nothing is yet: ``name.md``, ``name-2.md`` and so on."""
    for number in range(1, MANY):
        path = folder / (f"{name}{suffix}" if number == 1 else f"{name}-{number}{suffix}")
        if not path.exists():
            return path
    raise UnsupportedOperationError(f"there are too many files {name}-N{suffix}", operation="export")


def write(conversation: Any, folder: Path, form: str) -> Path:
    """Write the conversation to a new file: as ``save``, with all branches, or in one of the formats of `export`."""
    if form == "save":
        return Path(conversation.save(free_path(folder, stem(conversation), ".jsonl")))
    if form not in FORMATS:
        raise UnsupportedOperationError(f"cannot export as {str(form)[:20]!r}", operation="export")
    path = free_path(folder, stem(conversation), FORMATS[form])
    export(conversation, path, format=form)
    return path


def shown_path(path: Path) -> tuple[str, str]:
    """A path as a person reads it, and in full as Jupyter's server writes paths: with ``~`` for the home folder."""
    full = path.absolute()
    home = Path.home()
    whole = f"~/{full.relative_to(home).as_posix()}" if full.is_relative_to(home) else full.as_posix()
    return path.name, whole
