"""``--format code``: blocks of code that may go into the next cell, one at a time or together. Nothing of it is run.

``%mmsp apply`` takes from here what an answer has brought: a block of it by its number, or the new version of a cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmsp_nb.blocks import CodeBlock, code_blocks

from .editing import Edits, Proposal
from .formats import PYTHON, is_python
from .options import OptionError
from .sanitize import clean

__all__ = ["Code", "Waiting"]

SHELLS = {"bash": "%%bash", "shell": "%%bash", "sh": "%%sh"}
"""Languages that IPython has a cell magic for, so that such a block can be a cell too."""

ALL = "all"


@dataclass(frozen=True)
class Code:
    """The blocks of code of one answer, in the order in which they are shown."""

    blocks: tuple[CodeBlock, ...]

    @classmethod
    def of(cls, text: str) -> Code:
        """Those of an answer's text. A text without fences that is Python is one block."""
        found = tuple(code_blocks(text))
        if not found and is_python(text):
            found = (CodeBlock("python", text.strip("\n")),)
        return cls(found)

    @property
    def first(self) -> int | None:
        """The number of the first block of Python, from 1; None when there is none that could be run."""
        return next(iter(self._python()), None)

    def cell(self, number: int) -> str:
        """That block as a cell. OptionError when there is none of that number, or it is nothing a cell can run."""
        if not 1 <= number <= len(self.blocks):
            last = len(self.blocks)
            raise OptionError(
                f"there is no block {number}: the answer has {last} block{'' if last == 1 else 's'} of code"
            )
        block = self.blocks[number - 1]
        code = clean(block.code).strip("\n")
        if not block.complete:
            raise OptionError(f"block {number} is cut off: %mmsp continue lets the model go on")
        if not code.strip():
            raise OptionError(f"block {number} is empty")
        if block.language in PYTHON:
            return code
        if magic := SHELLS.get(block.language):
            return code if code.startswith("%%") else f"{magic}\n{code}"
        raise OptionError(f"block {number} is {clean(block.language)}, which a cell cannot run")

    def together(self) -> str:
        """All blocks of Python as one cell. OptionError when there is none."""
        numbers = self._python()
        if not numbers:
            raise OptionError(self.nothing())
        return "\n\n".join(self.cell(number) for number in numbers)

    def line(self, number: int) -> str:
        """What is said when that block has been put into the next cell."""
        count = len(self.blocks)
        what = "the code" if count == 1 else f"block {number} of {count}"
        return f"{what} is in the next cell; read it before you run it"

    def more(self, number: int) -> str:
        """How to get what is not in the next cell, when that block is; nothing when there is nothing else."""
        others = [other for other in range(1, len(self.blocks) + 1) if other != number and self._fits(other)]
        if not others:
            return ""
        after = next((other for other in others if other > number), others[0])
        joined = f", %mmsp apply {ALL} the Python of all" if len(self._python()) > 1 else ""
        return f"; %mmsp apply {after} puts another there{joined}"

    def nothing(self) -> str:
        """Why no block goes into the next cell by itself."""
        if any(block.language in PYTHON and not block.complete for block in self.blocks):
            return "the Python code in this answer is cut off: %mmsp continue lets the model go on"
        others = [number for number in range(1, len(self.blocks) + 1) if self._fits(number)]
        hint = f"; %mmsp apply {others[0]} puts its {self.blocks[others[0] - 1].language} there" if others else ""
        return f"there is no Python code in this answer{hint}"

    def _python(self) -> list[int]:
        return [
            number
            for number, block in enumerate(self.blocks, 1)
            if block.language in PYTHON and block.complete and block.code.strip()
        ]

    def _fits(self, number: int) -> bool:
        try:
            self.cell(number)
        except OptionError:
            return False
        return True


class Waiting:
    """What ``%mmsp apply`` can put into the next cell: the code of the last answer that brought some, and `Edits`.

    Of both, what came last is meant where the word does not tell: a number is a block of the code, or an execution.
    """

    def __init__(self) -> None:
        self.edits = Edits()
        self.code: Code | None = None
        self._newest_is_code = False

    def bring(self, code: Code) -> None:
        """Keep the code of an answer; it takes the place of the one before."""
        self.code, self._newest_is_code = code, bool(code.blocks)

    def propose(self, proposal: Proposal) -> None:
        """Keep the new version of a cell."""
        self.edits.add(proposal)
        self._newest_is_code = False

    def names(self) -> list[str]:
        """What can be named, for completion."""
        count = 0 if self.code is None else len(self.code.blocks)
        return [*self.edits.names(), *map(str, range(1, count + 1)), *([ALL] if count > 1 else [])]

    def take(self, name: str | None) -> tuple[str, str]:
        """The text of the next cell and a line that says so. OptionError when nothing waits that is called so."""
        code = self.code
        if code is not None and code.blocks and self._is_of_code(name):
            if name == ALL:
                return code.together(), "the Python of all blocks is in the next cell; read it before you run it"
            number = int(name) if name else code.first
            if number is None:
                raise OptionError(code.nothing())
            return code.cell(number), code.line(number) + ("" if name else code.more(number))
        proposal = self.edits.take(name)
        rest = f"; new versions of {', '.join(self.edits.names())} wait too" if self.edits.names() else ""
        return (
            proposal.after,
            f"the new version of {proposal.label} is in the next cell; read it before you run it{rest}",
        )

    def _is_of_code(self, name: str | None) -> bool:
        if name is None or name.isdecimal():
            return self._newest_is_code or not self.edits.knows(name)
        return name == ALL
