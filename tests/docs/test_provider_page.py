"""docs/providers.md is what the vendor table says."""

import subprocess
import sys
from pathlib import Path

from mmsp_nb.providers.vendors import VENDORS

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_table_says():
    script = ROOT / "scripts" / "provider_table.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_every_client_type_has_both_rows():
    page = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
    for name in VENDORS:
        assert page.count(f"\n| `{name}` |") == 2
