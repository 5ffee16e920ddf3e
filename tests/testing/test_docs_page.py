"""The page about testing: its code runs, its table is the registry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from mmsp_nb.testing import faults, streams

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    module = tmp_path / "test_page.py"
    module.write_text("\n\n".join(blocks), encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", f"--rootdir={tmp_path}"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, module], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(re.findall(r'^(?:async )?def test_', PAGE, flags=re.MULTILINE))} passed" in ran.stdout


def test_the_table_of_faults_is_the_registry():
    rows = re.findall(r"^\| `([a-z-]+?)(-N)?`(?: \((\d+)\))? \| (.*) \|$", PAGE, flags=re.MULTILINE)
    listed = [(name, int(number) if number else None, summary) for name, _, number, summary in rows]
    assert listed == [(f.name, f.number, f.summary) for f in faults.FAULTS.values()]


def test_the_page_names_every_dialect_and_answer():
    for name in (*streams.DIALECTS, *streams.NAMES):
        assert f"`{name}`" in PAGE
