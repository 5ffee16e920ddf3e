"""The pages build without a warning, and their code runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ["index", "how-to", "replay", "coming-from", "tools-and-safety", "tools", "many-rows"]
"""Pages whose code is run as cells of one IPython shell. That of testing.md is run by pytest."""

RUN_CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.run_line_magic("load_ext", "mmsp_nb")
for cell in sys.stdin.read().split("\\n-----\\n"):
    result = shell.run_cell(cell)
    if not result.success:
        sys.exit(f"this cell failed: {cell}")
"""


def cells(page: str) -> list[str]:
    """Python blocks, and blocks without a language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    return [text.rstrip() for language, text in blocks if language in ("", "python")]


@pytest.mark.parametrize("name", RUN)
def test_the_code_of_a_page_runs(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    env = dict(os.environ, MMSP_MODEL="demo", IPYTHONDIR=str(tmp_path))
    text = "\n-----\n".join(cells(page))
    ran = subprocess.run(
        [sys.executable, "-c", RUN_CELLS],
        input=text,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    env = dict(os.environ, NO_MKDOCS_2_WARNING="1")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stdout + built.stderr
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        assert (tmp_path / "notebooks" / f"{notebook.stem}.html").exists()
