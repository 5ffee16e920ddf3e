"""``--edit In[7]``: a model rewrites a cell; ``%mmsp apply`` puts the new version into the next cell, to be read.

What the answer proposes is shown as a difference and kept. Nothing of it is ever run here.
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from typing import Any

from mmsp_nb.blocks import code_blocks
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.styles import WRAPPED

from .formats import PYTHON, is_python
from .options import OptionError
from .render import note_html, wrap
from .sanitize import clean, escape
from .secrets import mask
from .sources import Source

__all__ = ["Edits", "Proposal", "bundle", "instruction", "proposed", "show"]

KEPT = 20
"""So many proposals wait at most; the oldest is forgotten first."""

MAX_LINES = 1_000
"""Lines of a difference that are shown."""

AROUND = 3
"""Unchanged lines above and below a change."""

_LINE = {
    "+": "background:rgba(46,160,67,.2)",
    "-": "background:rgba(248,81,73,.2)",
    "@": "opacity:.6",
    " ": "",
}
_PRE = f"{WRAPPED};margin:.3em 0;line-height:1.35"
_ANSI = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


@dataclass(frozen=True)
class Proposal:
    """A new version of a cell, which nobody has run."""

    label: str
    before: str
    after: str

    def lines(self) -> list[str]:
        """The difference: lines that begin with ``-``, ``+``, a space, or ``@@`` where some are left out."""
        one, other = (text.rstrip("\n").split("\n") for text in (self.before, self.after))
        found = list(difflib.unified_diff(one, other, n=AROUND, lineterm=""))[2:]
        rest = len(found) - MAX_LINES
        return found if rest <= 0 else [*found[:MAX_LINES], f"@@ {rest:,} more lines @@"]


class Edits:
    """The proposals, by the labels of their cells, the newest last.

    One that was taken can be taken again by its name, and without one when nothing else waits: the cell it went into
    may have been deleted.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Proposal] = {}
        self._taken: dict[str, Proposal] = {}

    def add(self, proposal: Proposal) -> None:
        """It takes the place of an older one for the same cell."""
        self._taken.pop(proposal.label, None)
        _put(self._waiting, proposal)

    def names(self) -> list[str]:
        """The labels of those that nobody has taken, the newest last."""
        return list(self._waiting)

    def knows(self, name: str | None) -> bool:
        """Whether there is one of that name; None asks for any."""
        return bool(self._all()) if name is None else name in self._labels()

    def take(self, name: str | None = None) -> Proposal:
        """The newest one, or that of the cell called ``name``; it waits no longer. OptionError when there is none."""
        known = self._all()
        if not known:
            raise OptionError(
                "there is nothing to apply: %%mmsp --edit In[7] lets a model rewrite that cell first, "
                "and --format code brings blocks of code"
            )
        if name is None:
            label = next(reversed(self._waiting or self._taken))
        elif name in (labels := self._labels()):
            label = labels[name]
        else:
            raise OptionError(
                f"no new version of {name} waits{did_you_mean(name, known)}; there are: {', '.join(known)}"
            )
        proposal = self._waiting.pop(label, None) or self._taken[label]
        _put(self._taken, proposal)
        return proposal

    def _all(self) -> dict[str, Proposal]:
        return {**self._taken, **self._waiting}

    def _labels(self) -> dict[str, str]:
        known = self._all()
        labels = {label.removeprefix("cell "): label for label in known} | {label: label for label in known}
        return labels | {label[3:-1]: label for label in known if label.startswith("In[")}


def _put(proposals: dict[str, Proposal], proposal: Proposal) -> None:
    """As the newest; the oldest is forgotten when there are many."""
    proposals.pop(proposal.label, None)
    proposals[proposal.label] = proposal
    while len(proposals) > KEPT:
        del proposals[next(iter(proposals))]


def instruction(source: Source) -> str:
    """What stands below the prompt: the cell, and how to answer."""
    fence = "```"
    while fence in source.text:
        fence += "`"
    text = source.text.rstrip("\n")
    return (
        f"This is {source.label}:\n{fence}{source.language}\n{text}\n{fence}\n\n"
        "Rewrite it. Answer with the whole new cell in one block of code."
    )


def proposed(text: str, source: Source) -> Proposal:
    """The new version of ``source`` in an answer. OptionError when there is none, or it changes nothing.

    Of several blocks of code it is the one that is most like the cell.
    """
    blocks = code_blocks(text)
    whole = [block.code for block in blocks if block.complete]
    if blocks and not whole:
        raise OptionError(f"the code in this answer is cut off, so that {source.label} has no new version")
    if not whole and source.language in PYTHON and is_python(text):
        whole = [text]
    if not whole:
        raise OptionError(f"there is no code in this answer, so that {source.label} has no new version")
    code = max(whole, key=lambda each: difflib.SequenceMatcher(None, source.text, each).quick_ratio())
    code = clean(code).strip("\n")
    first, _, _ = source.text.lstrip().partition("\n")
    if first.startswith("%%") and not code.lstrip().startswith("%%"):
        code = f"{first}\n{code}"  # the magic that makes it what it is
    if not code.strip():
        raise OptionError(f"the code in this answer is empty, so that {source.label} has no new version")
    before = clean(source.text).strip("\n")
    if code.rstrip() == before.rstrip():
        raise OptionError(f"the answer leaves {source.label} as it is: there is nothing to apply")
    return Proposal(source.label, before, code)


def bundle(proposal: Proposal, *, colours: bool = False) -> dict[str, str]:
    """The difference as safe HTML and as text; ``colours``: those of a terminal, in the text."""
    lines = [mask(line) for line in proposal.lines()]
    head = f"{proposal.label}, new version"
    note = "%mmsp apply puts it into the next cell, where nobody has run it"
    rows = "".join(f'<div style="{_LINE[line[:1] or " "]}">{escape(line, tex=False) or " "}</div>' for line in lines)
    html = f'<div><b>{escape(head)}</b><pre style="{_PRE}">{rows}</pre>{note_html(note)}</div>'
    text = [f"{_ANSI[line[0]]}{line}\x1b[0m" if colours and line[:1] in _ANSI else line for line in lines]
    return {"text/html": wrap(html), "text/plain": "\n".join([f"{head}:", *text, note])}


def show(shell: Any, proposal: Proposal) -> None:
    """Draw the difference into the running cell."""
    from . import tee
    from .host import in_kernel

    colours = not in_kernel(shell) and sys.stdout.isatty()
    with tee.suspended():
        if in_kernel(shell):
            shell.display_pub.publish(bundle(proposal), {"mmsp": {"kind": "diff"}})
        else:
            print(bundle(proposal, colours=colours)["text/plain"])
