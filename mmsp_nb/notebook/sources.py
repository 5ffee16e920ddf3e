"""Other cells by id, tag or execution: ``{{cell("plots")}}`` in a prompt, ``{{In[3]}}``, and what ``--edit`` changes.

A kernel learns the ids of cells when they run. Tags, text cells and outputs are in the notebook's file only, as it was
last saved; where that is, the front end says (JupyterLab, Notebook, VS Code). What has run here comes first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmsp_nb.protocol.suggestions import did_you_mean

from .options import OptionError
from .sanitize import clean, shorten

__all__ = ["NotebookFile", "Source", "Sources", "notebook_path"]

MAX_OUTPUT = 20_000
"""Characters of a cell's outputs that are inserted."""

MAX_FILE = 200_000_000
"""A larger notebook is not read."""

_EXECUTION = re.compile(r"(?:In)?\[?\s*(?P<number>-?\d+)\s*\]?", re.IGNORECASE)
_LANGUAGE = re.compile(r"%%(?P<name>\w+)")


@dataclass(frozen=True)
class Source:
    """The text of a cell. ``label`` names it for a person; ``count`` is its execution, None when none is known."""

    label: str
    text: str
    code: bool = True
    count: int | None = None

    @property
    def language(self) -> str:
        """What its text is written in: that of its cell magic if it is another language, else Python."""
        match = _LANGUAGE.match(self.text.lstrip())
        name = match["name"].lower() if match else ""
        return name if name in _LANGUAGES else "python" if self.code else "markdown"


_LANGUAGES = ("bash", "sh", "html", "javascript", "js", "latex", "perl", "ruby", "sql", "r", "julia", "svg", "markdown")


@dataclass
class _Saved:
    """A cell of a file."""

    text: str
    kind: str
    id: str | None = None
    tags: Sequence[str] = ()
    count: int | None = None
    outputs: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


class NotebookFile:
    """A notebook as it was last saved. It is read anew when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._cells: list[_Saved] = []

    @property
    def cells(self) -> list[_Saved]:
        """Its cells. OptionError when it cannot be read."""
        try:
            stat = self.path.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            if stamp != self._stamp:
                if stat.st_size > MAX_FILE:
                    raise OptionError(f"{self.path.name} has more than {MAX_FILE // 1_000_000} MB, which is not read")
                self._cells, self._stamp = _cells(json.loads(self.path.read_text("utf-8"))), stamp
        except OSError as error:
            raise OptionError(f"{self.path}: {error.strerror or error}") from None
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise OptionError(f"{self.path.name} is no notebook in format 4") from None
        return self._cells


def notebook_path(namespace: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file of the notebook that this kernel runs for; None where the front end does not say, or it is not there.

    A Jupyter server says it when the kernel starts, so a notebook that was renamed since is not found.
    """
    for named in (namespace.get("__vsc_ipynb_file__"), environ.get("JPY_SESSION_NAME"), namespace.get("__session__")):
        if isinstance(named, str) and named.endswith(".ipynb") and (path := Path(named)).is_file():
            return path
    return None


class Sources:
    """The cells of a notebook, for one shell. Calling it is ``cell(...)`` in a prompt."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._ran: dict[str, Source] = {}
        self._files: dict[Path, NotebookFile] = {}
        self._next = 1

    def note(self, name: str | None, text: str, *, counted: bool = True) -> None:
        """A cell of that id, if it is known, is about to run. ``counted``: it gets a number and a place in ``In``."""
        self._next = len(self.history())  # the shell's own counter is ahead of it in some versions
        if name:
            self._ran.pop(name, None)
            self._ran[name] = Source(f"cell {name}", text, True, self._next if counted else None)

    def __call__(self, name: Any = None, *, outputs: bool = False, file: str | os.PathLike[str] | None = None) -> str:
        """The source of the cell with that id, or of all cells with that tag.

        Args:
            name: An id or a tag. It has to be given.
            outputs: The text outputs too, below the source.
            file: The notebook to look into; default is this one.
        """
        if not isinstance(name, str) or not name.strip():
            raise OptionError("cell() takes the id or the tag of a cell, as in cell('plots')")
        found = self._found(name, None if file is None else Path(file).expanduser())
        return "\n\n".join(self._with_outputs(name, each, saved) if outputs else each.text for each, saved in found)

    def find(self, target: str) -> Source:
        """One cell by its execution (``In[7]``, ``In[-1]``), id or tag. OptionError when there is none, or several."""
        if match := _EXECUTION.fullmatch(target.strip()):
            return self._execution(int(match["number"]))
        found = self._found(target, None)
        if len(found) > 1:
            raise OptionError(f"{len(found)} cells have the tag {target!r}: name one by its id")
        source = found[0][0]
        if not source.code:
            raise OptionError(f"{target} is a text cell, and only code can be edited")
        return source

    def known(self) -> list[str]:
        """Ids and tags, tags first."""
        try:
            saved = self._saved(None)
        except OptionError:
            saved = []
        tags = [tag for each in saved for tag in each.tags]
        return list(dict.fromkeys([*tags, *self._ran, *(each.id for each in saved if each.id)]))

    def history(self) -> list[str]:
        """What was typed, by the numbers of executions: as ``In``, before magics are rewritten."""
        raw: list[str] = self._shell.history_manager.input_hist_raw
        return raw

    def is_history(self, value: Any) -> bool:
        """Whether ``value`` is the shell's own ``In``."""
        return value is self._shell.history_manager.input_hist_parsed

    def _execution(self, number: int) -> Source:
        before = self.history()[: self._next]  # without the cell that is running
        last = len(before) - 1
        index = number if number > 0 else len(before) + number
        if not 0 < index <= last:
            raise OptionError(f"there is no In[{number}]" + (f": the last one is In[{last}]" if last > 0 else " yet"))
        return Source(f"In[{index}]", before[index], True, index)

    def _found(self, name: str, file: Path | None) -> list[tuple[Source, _Saved | None]]:
        if file is not None and not file.is_file():
            raise OptionError(f"there is no file {file}")
        saved = self._saved(file)
        ran = self._ran if file is None else {}
        hits = [each for each in saved if each.id == name] or [each for each in saved if name in each.tags]
        found: list[tuple[Source, _Saved | None]] = []
        for each in hits:
            source = Source(f"cell {each.id or name}", each.text, each.kind == "code")
            found.append((ran.get(each.id or "", source), each))
        if not found and name in ran:
            found = [(ran[name], None)]
        if not found:
            raise OptionError(self._missing(name, file))
        return found

    def _missing(self, name: str, file: Path | None) -> str:
        path = file or notebook_path(self._shell.user_ns)
        if path is None:
            near = did_you_mean(name, self._ran)
            return (
                f"no cell {name!r} has run here{near}; this front end does not say where the notebook is saved, so "
                f"that a tag needs the file too: cell({name!r}, file='talk.ipynb')"
            )
        near = did_you_mean(name, self.known() if file is None else _names(self._saved(file)))
        return f"{path.name} has no cell with the id or tag {name!r}{near or ' (a new tag counts when it is saved)'}"

    def _saved(self, file: Path | None) -> list[_Saved]:
        path = file or notebook_path(self._shell.user_ns)
        if path is None:
            return []
        return self._files.setdefault(path, NotebookFile(path)).cells

    def _with_outputs(self, name: str, source: Source, saved: _Saved | None) -> str:
        if not source.code:
            return source.text
        same = saved is not None and (
            source.count is None or (saved.count == source.count and saved.text == source.text.rstrip("\n"))
        )
        if saved is not None and same:
            text = _text_of(saved.outputs)
        elif source.count is not None and source.count in (kept := self._shell.user_ns.get("Out", {})):
            text = repr(kept[source.count])
        else:
            raise OptionError(f"the outputs of {source.label}, as it last ran, are in no file: save the notebook first")
        return f"{source.text.rstrip()}\n\nOutput:\n{shorten(clean(text).rstrip(), MAX_OUTPUT) or '(nothing)'}"


def _cells(notebook: Mapping[str, Any]) -> list[_Saved]:
    return [
        _Saved(
            _joined(cell.get("source", "")),
            str(cell["cell_type"]),
            cell.get("id"),
            [str(tag) for tag in cell.get("metadata", {}).get("tags", ())],
            cell.get("execution_count"),
            cell.get("outputs", ()),
        )
        for cell in notebook["cells"]
    ]


def _names(cells: Sequence[_Saved]) -> list[str]:
    return [name for cell in cells for name in (*cell.tags, cell.id) if name]


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def _text_of(outputs: Sequence[Mapping[str, Any]]) -> str:
    """The outputs as text; of what has none, its kind."""
    parts: list[str] = []
    for output in outputs:
        kind = output.get("output_type")
        if kind == "stream":
            parts.append(_joined(output.get("text", "")))
        elif kind == "error":
            parts.append(f"{output.get('ename')}: {output.get('evalue')}\n")
        elif isinstance(data := output.get("data"), Mapping):
            text = _joined(data["text/plain"]) if "text/plain" in data else f"[{next(iter(data), 'nothing')}]"
            pictures = [f"[{mime}]" for mime in data if mime.startswith("image/")]
            parts.append("\n".join([text, *pictures]).rstrip("\n") + "\n")
    return "".join(parts)
