"""docs/reference.md is what the code says: every magic, option, setting and public name."""

import subprocess
import sys
from pathlib import Path

import mmsp_nb
import mmsp_nb.testing
from mmsp_nb.notebook.magics import MMSPMagics
from mmsp_nb.notebook.options import OPTIONS, SUBCOMMANDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


def test_everything_public_is_there():
    hidden = {"__version__", "load_ipython_extension", "unload_ipython_extension"}
    for name in {*mmsp_nb.__all__, *mmsp_nb.testing.__all__, "map"} - hidden:
        assert f"### `{name}`\n" in PAGE
    for name in [*OPTIONS, *SUBCOMMANDS, *MMSPMagics.class_own_traits(config=True)]:
        assert f"| `{name}` |" in PAGE


def test_the_page_is_what_the_code_says():
    if sys.version_info[:2] != (3, 11):  # signatures are written in other ways elsewhere
        return
    script = ROOT / "scripts" / "reference_page.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
