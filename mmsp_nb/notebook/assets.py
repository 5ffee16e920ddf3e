"""The files of the folder ``static`` as a server of a page hands them out."""

from __future__ import annotations

from importlib import resources

__all__ = ["ASSETS", "asset"]

ASSETS = {
    "/inspector.js": "text/javascript",
    "/inspector.css": "text/css",
    "/traces.js": "text/javascript",
    "/traces.css": "text/css",
}
"""What needs no token: it is the same everywhere."""


def asset(path: str) -> tuple[bytes, str]:
    """Content and type of one of the files."""
    data = resources.files(__package__).joinpath("static", path.lstrip("/")).read_bytes()
    return data, ASSETS.get(path, "text/html")
