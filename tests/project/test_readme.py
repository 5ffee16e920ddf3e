"""The README's code runs, its links lead somewhere, and its table is the code's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")

# Runs its standard input, cells separated by lines of dashes, in an IPython shell; the first failure ends it.
RUN_CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in sys.stdin.read().split("\\n-----\\n"):
    result = shell.run_cell(cell)
    if not result.success:
        sys.exit(f"this cell failed: {cell}")
"""


def cells(page: str) -> list[str]:
    """The Python blocks and the magic cells of a page, with every real model replaced by the demo model."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    code = [text.rstrip() for language, text in blocks if language == "python" or (not language and text[0] == "%")]
    return [re.sub(r'"(?:gpt|claude|gemini|deepseek)-[\w.-]+"', '"demo"', text) for text in code]


def test_the_code_of_the_readme_runs(tmp_path: Path) -> None:
    env = dict(os.environ, MMSP_MODEL="demo", IPYTHONDIR=str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-c", RUN_CELLS],
        input="\n-----\n".join(cells(README)),
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(cells(README)) >= 6
    assert "'14 °C, rain', '21 °C, sunny'" in ran.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_of_pages_lists_every_page() -> None:
    index = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    pages = {page.name for page in PAGES[1:]} - {"getting-started.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"`?make ([a-z-]+)`", page.read_text(encoding="utf-8"))}
    assert named <= targets


def test_the_table_of_providers_names_every_client_type_and_its_key() -> None:
    from mmsp_nb.providers.vendors import VENDORS

    for name, vendor in VENDORS.items():
        assert f"`{name}`" in README
        if vendor.api_key_env and not vendor.open_server:
            assert f"`{vendor.api_key_env}`" in README


def test_pictures_are_small() -> None:
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.suffix in (".png", ".svg", ".gif")]
    assert pictures
    assert all(path.stat().st_size < 300_000 for path in pictures)
