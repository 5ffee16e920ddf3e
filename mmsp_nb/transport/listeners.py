"""What usually listens on a port of this machine, and how it is started: for the error when nothing does."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["nothing_listens"]

_STARTED_WITH = {
    1234: "lms server start",
    8000: "vllm serve MODEL",
    8080: "llama-server -m MODEL.gguf",
    11434: "ollama serve",
}


def nothing_listens(url: str) -> str:
    """The end of a message: that no server is there, and what would start the one that is usual on this port."""
    command = _STARTED_WITH.get(urlsplit(url).port or 0)
    start = f"start it with `{command}`" if command else "start the server"
    return f"nothing listens there: {start}, or correct base_url"
