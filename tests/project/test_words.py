"""Words that may not stand in the project: they name a machine, a place packages come from, or unfinished work."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Written with a break in it, each, so that this file does not find itself.
FORBIDDEN = {
    "a path of a machine": r"(?<![\w.~-])/(?:wor[k]|roo[t]|far[m])/|/hom[e]/(?!somebody)\w|/User[s]/\w|[A-Z]:\\User[s]",
    "a package registry": r"pyp[i]\.org|pythonhoste[d]|registry\.npmj[s]|deb\.debia[n]|index-ur[l]|find-link[s]",
    "a place where nothing is built yet": r"\bTOD[O]\b|\bFIXM[E]\b|\bXX[X]\b",
}
BINARY = (".png", ".jpg", ".gif", ".woff2", ".ico")


def tracked() -> list[Path]:
    """The project's files: what git tracks, or everything where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return [path for path in found if path.is_file() and path.suffix not in BINARY]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_the_search_would_find_them() -> None:
    samples = ["see /wor" + "k/main", "cd /roo" + "t/x", "C:" + "\\Users\\x", "at pyp" + "i.org", "# TOD" + "O"]
    assert all(any(re.search(pattern, sample) for pattern in FORBIDDEN.values()) for sample in samples)


def notebooks() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def output_texts(notebook: Path) -> list[str]:
    """Everything in the outputs stored in a notebook, as text."""
    cells: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [json.dumps(output) for cell in cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("notebook", notebooks(), ids=lambda path: path.stem)
def test_the_outputs_stored_in_a_notebook_are_the_same_on_every_machine(notebook: Path) -> None:
    """No path, no port, no address of an object, no time."""
    varying = re.compile(
        r"127\.0\.0\.1:\d|localhost:\d|0x[0-9a-f]{6,}|/tm[p]/|/hom[e]/|site-packages|\d\d:\d\d:\d\d|\b\d+\.\d+ ?m?s\b"
    )
    for text in output_texts(notebook):
        found = varying.search(text)
        assert found is None, text[max(0, found.start() - 60) : found.end() + 60]


@pytest.mark.parametrize("notebook", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_shows_its_answers_before_it_is_run(notebook: Path) -> None:
    assert output_texts(notebook)
