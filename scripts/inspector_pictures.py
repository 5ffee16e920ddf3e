"""Takes the pictures of the inspector for the documentation: a scripted conversation, in both front ends and themes.

    .venv/bin/python scripts/inspector_pictures.py docs/images [--all FOLDER]

``docs/images`` gets the two of JupyterLab that the pages show; with ``--all`` every combination is written to FOLDER,
with the notebook reopened without its kernel and as a page of nbconvert, to be looked at. It needs what the browser
tests need, and uses their driver.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from install import find_chromium  # noqa: E402
from jupyter_driver import FLAGS, Jupyter, Notebook, expect  # noqa: E402

SETUP = (
    f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'browser')!r})\nimport inspected\nchat = inspected.scene()"
)
CELLS = (SETUP, "chat.browse()", "chat")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), headless=True, args=FLAGS)
        for theme in ("light", "dark"):
            picture(browser, "lab", theme, options.target / f"inspector-{theme}.png", options.all)
            if options.all:
                options.all.mkdir(parents=True, exist_ok=True)
                picture(browser, "notebook", theme, options.all / f"notebook-{theme}.png", options.all)
        browser.close()


def picture(browser: Browser, app: str, theme: str, target: Path, more: Path | None) -> None:
    """One inspector, at its end; with ``more``, its beginning, a comparison, and the notebook without a kernel too."""
    with Jupyter(browser, app, theme, scale=2) as jupyter:
        notebook = jupyter.notebook(*CELLS)
        page = notebook.page
        page.set_viewport_size({"width": 1000, "height": 1250})
        if app == "lab":
            page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        notebook.run(0, 1, 2)
        box = notebook.output(1).locator(".mmsp-inspector")
        box.scroll_into_view_if_needed()
        rest(notebook)
        box.evaluate("box => { box.style.height = '985px'; }")  # all of the conversation
        expect(box.locator(".row.error")).to_be_visible()
        expect(box.locator(".row.tool img")).to_be_visible()
        box.screenshot(path=str(target))
        if more is not None:
            more.mkdir(parents=True, exist_ok=True)
            box.locator(".list").evaluate("list => { list.scrollTop = 0; }")
            expect(box.locator(".row.you").first).to_be_visible()
            box.screenshot(path=str(more / f"{app}-{theme}-start.png"))
            page.screenshot(path=str(more / f"{app}-{theme}-page.png"))
            box.get_by_role("button", name="Compare this branch").click()
            expect(box.locator(".compare")).to_be_visible()
            box.screenshot(path=str(more / f"{app}-{theme}-compare.png"))
            box.get_by_role("button", name="Close").click()
            without_kernel(jupyter, notebook, more, f"{app}-{theme}")
        notebook.close()


def rest(notebook: Notebook) -> None:
    """Nothing focused, nothing pointed at."""
    notebook.page.evaluate("() => document.activeElement.blur()")
    notebook.page.mouse.move(5, 5)


def without_kernel(jupyter: Jupyter, notebook: Notebook, folder: Path, name: str) -> None:
    saved = notebook.saved()
    path = jupyter.root / f"{name}.ipynb"
    path.write_text(json.dumps(saved), encoding="utf-8")
    page = jupyter.context.new_page()
    page.set_viewport_size({"width": 1000, "height": 1000})
    where = "lab/tree" if jupyter.app == "lab" else "notebooks"
    page.goto(
        f"{jupyter.url}/{where}/{path.name}?token={jupyter.token}&kernel=none" + "&reset" * (jupyter.app == "lab")
    )
    expect(page.locator(".mmsp-conversation").last).to_be_visible()
    page.locator(".mmsp-conversation").last.scroll_into_view_if_needed()
    page.screenshot(path=str(folder / f"{name}-reopened.png"))
    page.close()
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(path), "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    page = jupyter.context.new_page()
    page.goto((folder / f"{name}.html").resolve().as_uri(), wait_until="domcontentloaded")
    page.locator(".mmsp-conversation").last.scroll_into_view_if_needed()
    page.screenshot(path=str(folder / f"{name}-nbconvert.png"))
    page.close()
    (folder / f"{name}.html").unlink()


if __name__ == "__main__":
    main()
