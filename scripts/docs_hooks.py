"""Hooks of mkdocs. Pages are written to be read beside the code: links that leave docs/ lead elsewhere on the site."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# [text](../somewhere#part)
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to notebooks lead to their pages, those to the README to the first page; others stay as text."""
    up = "../" if page.file.src_uri != "index.md" else ""

    def target(match: re.Match[str]) -> str:
        text, path, _ = match.groups()
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"{page.file.src_uri} links to {path}, which is not there")
        if path.endswith(".ipynb"):
            return f'<a href="{up}{path.removesuffix(".ipynb")}.html">{text}</a>'
        return f"[{text}](index.md)" if path == "README.md" else text

    return _OUTSIDE.sub(target, markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """The notebooks, as pages of their own."""
    notebooks = sorted(map(str, (ROOT / "notebooks").glob("*.ipynb")))
    folder = Path(config["site_dir"]) / "notebooks"
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--log-level=ERROR", f"--output-dir={folder}"]
    subprocess.run([*command, *notebooks], check=True)
    for made in folder.glob("*.html"):  # the notebooks link to each other, and to pages of docs/
        text = made.read_text(encoding="utf-8")
        text = re.sub(r'href="([\w-]+)\.ipynb"', r'href="\1.html"', text)
        text = re.sub(r'href="\.\./docs/([\w-]+)\.md(#[^"]*)?"', r'href="../\1/\2"', text)
        made.write_text(text, encoding="utf-8")
