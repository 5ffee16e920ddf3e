"""Takes the picture of the README: the quick start's first cells in JupyterLab, on the demo model.

    .venv/bin/python scripts/screenshot.py docs/images/quickstart.png

It needs what the browser tests need, and uses their driver.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from install import find_chromium  # noqa: E402
from jupyter_driver import FLAGS, Jupyter  # noqa: E402

FIRST, LAST = 2, 4  # code cells of the quick start: a tool, a question that uses it, the next question


def main(target: Path) -> None:
    cells = json.loads((ROOT / "notebooks" / "quickstart.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][: LAST + 1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), headless=True, args=FLAGS)
        with Jupyter(browser, scale=2, MMSP_MODEL="demo") as jupyter:
            notebook = jupyter.notebook(*sources)
            notebook.run(*range(LAST + 1))
            page = notebook.page
            page.set_viewport_size({"width": 1000, "height": 1600})
            page.evaluate("() => document.activeElement.blur()")
            page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
            notebook.cell(0).scroll_into_view_if_needed()
            first, last = (notebook.cell(index).bounding_box() for index in (FIRST, LAST))
            assert first is not None and last is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            height = last["y"] + last["height"] - first["y"]
            clip = {"x": first["x"], "y": first["y"], "width": first["width"], "height": height}
            page.screenshot(path=str(target), clip=clip)
            notebook.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
