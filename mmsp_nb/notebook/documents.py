"""A conversation as a document for the inspector: a name for it, a free path, the file. `exports` writes the text."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mmsp_nb.exports import FORMATS, export
from mmsp_nb.protocol.errors import UnsupportedOperationError

__all__ = ["SIZE", "Written", "cells", "document", "free_path", "shown_path", "stem", "write"]

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


@dataclass(frozen=True)
class Written:
    """A file that was written, shown as a link that JupyterLab and Notebook open beside the notebook."""

    path: Path

    def __repr__(self) -> str:
        return f"wrote {self.path}"

    def _repr_html_(self) -> str:
        if self.path.is_absolute():  # a page can only lead to what lies beside its notebook
            return f"wrote <code>{html.escape(str(self.path))}</code>"
        return f'wrote <a href="{quote(self.path.as_posix())}">{html.escape(str(self.path))}</a>'


def cells(conversation: Any, file: str | None = None) -> Written:
    """Write the branch in use as a notebook: to ``file``, or beside the notebook under a name that is free.

    ValueError when ``file`` is no notebook's name or is there already.
    """
    if file is None:
        return Written(write(conversation, Path(), "notebook"))
    path = Path(file).expanduser()
    if path.suffix != ".ipynb":
        raise ValueError(f"%mmsp cells writes notebooks: name it {path.with_suffix('.ipynb')}")
    if path.exists():
        raise ValueError(f"{path} is there already: give another name, or %mmsp export {path} to write it anew")
    export(conversation, path, format="notebook")
    return Written(path)


def shown_path(path: Path, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Where a file is, for a page.

    Returns:
        ``path`` as a person reads it, ``full`` as Jupyter's server writes paths (with ``~`` for the home folder), and
        ``beside``: whether it lies in the folder of the notebook, as far as the server has told.
    """
    full = path.absolute()
    home = Path.home()
    whole = f"~/{full.relative_to(home).as_posix()}" if full.is_relative_to(home) else full.as_posix()
    session = environ.get("JPY_SESSION_NAME", "")
    return {"path": path.name, "full": whole, "beside": bool(session) and Path(session).parent == full.parent}
