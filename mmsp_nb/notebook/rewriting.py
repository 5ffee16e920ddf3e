"""What becomes of the text of a cell before it is run: nothing of a prompt may be taken for IPython's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mmsp_nb.interrupts import attend

from .host import in_kernel

if TYPE_CHECKING:
    from .host import Cells

__all__ = ["NAME", "Questions", "Transformer", "Verbatim"]

NAME = "mmsp"
"""What the magics are called."""


class Verbatim:
    """Takes a ``%%mmsp`` cell as it is, before IPython takes ``>>>`` and ``In [1]:`` away, also in a prompt.

    And lets ``%%mmsp --help`` stand with nothing below it.
    """

    has_side_effects = True  # so that a terminal, which asks whether a cell is complete, still sees a cell magic
    _first = re.compile(r"%%" + NAME + r"(?:[ \t]+(?P<line>.*))?\Z")
    _help = re.compile(r"(?:.*[ \t])?(?:--help|-h)\Z")

    def __call__(self, lines: list[str]) -> list[str]:
        start = next((index for index, line in enumerate(lines) if line.strip()), 0)
        match = self._first.match(lines[start].rstrip()) if lines else None
        if match is None:
            return lines
        line, body = match["line"] or "", "".join(lines[start + 1 :])
        if self._help.match(line) and not body.strip():
            return [f"get_ipython().run_line_magic({NAME!r}, 'help --cell')\n"]
        return [f"get_ipython().run_cell_magic({NAME!r}, {line!r}, {body!r})\n"]


class Questions:
    """Saves a ``%mmsp ask`` or ``why`` that ends with a question mark from being taken for a request for help."""

    has_side_effects = False
    _line = re.compile(
        r"(?P<target>\s*(?:[\w.,\[\] ]+=\s*)?)%" + NAME + r"[ \t]+(?P<text>(?:ask|why|deny)[ \t].*\?)\s*\Z"
    )

    def __call__(self, lines: list[str]) -> list[str]:
        if not lines or lines[0].startswith("%%"):
            return lines
        done: list[str] = []
        quotes = {'"""': 0, "'''": 0}
        for line in lines:
            match = self._line.match(line)
            if match and not any(count % 2 for count in quotes.values()):
                line = f"{match['target']}get_ipython().run_line_magic({NAME!r}, {match['text']!r})\n"
            for quote in quotes:
                quotes[quote] += line.count(quote)
            done.append(line)
        return done


class Transformer:
    """Puts ``await`` before a cell that is nothing but our magic, so that the kernel's loop runs while it waits.

    Widgets and their Stop buttons live then. The rule: a kernel hosts the shell, ``%autoawait`` is on, and no cell
    is running yet (a kernel transforms a cell before it announces it). In every other case, `%%time`, `%%capture`,
    scripts, terminals, nested runs, the same magic blocks.
    """

    has_side_effects = False

    def __init__(self, shell: Any, cells: Cells) -> None:
        self._shell = shell
        self._cells = cells

    def __call__(self, lines: list[str]) -> list[str]:
        if self._cells.depth > 0 or not self._can_await():
            return lines
        done = self._awaiting(lines)
        if any("await" in line or "async" in line for line in done):
            attend()
        return done

    def _awaiting(self, lines: list[str]) -> list[str]:
        if len(lines) != 1:
            return lines
        line = lines[0]
        for kind in ("cell", "line"):
            start = f"get_ipython().run_{kind}_magic('{NAME}', "
            if line.startswith(start):
                return [f"await get_ipython().magics_manager.registry['MMSPMagics'].awaited({line[len(start) :]}"]
        return lines

    def _can_await(self) -> bool:
        return bool(getattr(self._shell, "autoawait", False)) and in_kernel(self._shell)
