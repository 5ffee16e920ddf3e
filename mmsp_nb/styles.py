"""Styles that all HTML of ours shares. Light: it is loaded with the extension."""

from __future__ import annotations

__all__ = ["WRAPPED"]

WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal"
"""How long lines of a ``<pre>`` wrap: by Jupyter's own style they break inside words."""
