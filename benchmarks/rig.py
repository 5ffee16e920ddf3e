"""What the benchmarks share: figures beside a peer's, rounds that alternate, the table."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import server

__all__ = ["HERE", "PEERS", "REFERENCE", "Bench", "Figure", "Section", "child", "child_cpu", "interleaved", "table"]

HERE = Path(__file__).parent
REFERENCE = HERE.parent / ".venvs" / "reference" / "bin" / "python"
"""An interpreter with the reference package; `make conformance` makes it."""
PEERS = HERE.parent / ".venvs" / "peers" / "bin" / "python"
"""An interpreter with other packages of the field; `make bench` makes it."""


@dataclass(frozen=True)
class Figure:
    """One line of the results, for the record unless it has a goal.

    ours, peer: medians in ``unit``, of the same run. goal: the highest ratio that is good enough; most: the highest
    value of ours; within: how much more than the peer's it may be.
    """

    what: str
    ours: float
    peer: float
    unit: str
    goal: float | None = None
    most: float | None = None
    within: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def verdict(self) -> str:
        allowed = ((self.ratio, self.goal), (self.ours, self.most), (self.ours - self.peer, self.within))
        met = [value <= limit for value, limit in allowed if limit is not None]
        return "" if not met else "yes" if all(met) else "**no**"

    def row(self) -> list[str]:
        goals = (
            "" if self.goal is None else f"{self.goal:g}",
            "" if self.most is None else f"{self.most:,g} {self.unit}".rstrip(),
            "" if self.within is None else f"peer + {self.within:g} {self.unit}",
        )
        goal = ", ".join(filter(None, goals))
        return [
            self.what,
            shown(self.ours, self.unit),
            shown(self.peer, self.unit),
            f"{self.ratio:.2f}",
            goal,
            self.verdict,
        ]


@dataclass(frozen=True)
class Section:
    """A part of the results: a title, what is measured beside what, figures, and Markdown below their table."""

    title: str
    explained: str
    figures: list[Figure] = field(default_factory=list)
    below: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        head = ("", "here", "peer", "ratio", "goal", "met")
        figures = [table(head, (figure.row() for figure in self.figures))] if self.figures else []
        return "\n\n".join([f"## {self.title}", self.explained, *figures, *self.below])


class Bench:
    """What a benchmark is given: how thorough to be, and a server to talk to.

    Args:
        quick: few rounds, only to see that all of it runs.
    """

    def __init__(self, *, quick: bool = False) -> None:
        self.quick = quick
        self._open = contextlib.ExitStack()

    def rounds(self, full: int) -> int:
        """How often to measure, where ``full`` times are good for the record."""
        return min(full, 2) if self.quick else full

    @functools.cached_property
    def address(self) -> str:
        """``http://127.0.0.1:<port>`` of the server of `server.py`, in a process of its own."""
        return self._open.enter_context(server.running())

    def close(self) -> None:
        self._open.close()


def shown(value: float, unit: str) -> str:
    if value == int(value):
        return f"{value:,.0f} {unit}".rstrip()
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}".rstrip()


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    names = list(head)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def interleaved(measures: Mapping[str, Callable[[], float]], rounds: int, *, warm: int = 1) -> dict[str, float]:
    """Median of each measure; they take turns, so that a busy machine slows them all alike."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds + warm):
        for name, measure in measures.items():
            value = measure()
            if number >= warm:
                found[name].append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def child_cpu(code: str) -> float:
    """CPU milliseconds of a fresh interpreter that runs ``code``, its start included."""
    process = subprocess.Popen([sys.executable, "-c", code], env=_cached(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, code
    return (usage.ru_utime + usage.ru_stime) * 1e3


@functools.cache
def _cached() -> dict[str, str]:
    """The environment of someone whose interpreter may keep compiled modules, which an installed package has."""
    folder = tempfile.mkdtemp(prefix="benchmarks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder, "PYTHONWARNINGS": "ignore"}


def child(script: str, *arguments: str, python: str | Path = sys.executable) -> Any:
    """The JSON that a script beside this one prints."""
    command = [str(python), "-W", "ignore", str(HERE / script), *arguments]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
