"""Formulas as MathML, for pages without MathJax: the inspector, exported HTML. Browsers draw it without any script.

latex2mathml reads the TeX and gives a tree. It passes on whatever the TeX says (``\\href``, ``\\style``, markup within
``\\text``), so nothing of its own writing is used: the tree is written here, from a list of elements and attributes.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any

from .markdown import is_mathematics
from .sanitize import escape

__all__ = ["mathml"]

LIMIT = 2_000
"""Characters of TeX; a longer formula is shown as it is written."""

DEPTH = 60
"""Elements within each other."""

_ELEMENTS = frozenset(
    ("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup",
     "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd", "mstyle",
     "mpadded", "mphantom", "menclose")
)  # fmt: skip
_ATTRIBUTES = frozenset(
    ("display", "displaystyle", "scriptlevel", "mathvariant", "stretchy", "fence", "separator", "largeop", "symmetric",
     "movablelimits", "accent", "accentunder", "lspace", "rspace", "minsize", "maxsize", "linethickness",
     "columnalign", "rowalign", "columnspacing", "rowspacing", "columnlines", "rowlines", "notation", "width",
     "height", "depth")
)  # fmt: skip
_UPRIGHT = re.compile(r"\\(?:mathrm|rm)\{([A-Za-z ]+)\}")  # latex2mathml would slant a single letter
_VALUE = re.compile(r"[\w.%+\- ]{1,60}")


@lru_cache(maxsize=512)
def mathml(tex: str, display: bool) -> str:
    """``tex`` as a ``math`` element, or as plain code when it is more than mathematics or cannot be read.

    Args:
        tex: A formula without its dollars.
        display: Whether it stands in a line of its own.
    """
    mark = "$$" if display else "$"
    written = f"<code>{escape(mark + tex.strip() + mark, tex=False)}</code>"
    shown = _tree(tex.strip(), display) or written
    return f"<div>{shown}</div>\n" if display else f"<span>{shown}</span>"


def _tree(tex: str, display: bool) -> str:
    if not tex or len(tex) > LIMIT or not is_mathematics(tex):
        return ""
    from latex2mathml.converter import convert_to_element

    try:
        upright = _UPRIGHT.sub(r"\\text{\1}", tex)
        return _written(convert_to_element(upright, display="block" if display else "inline"), 0)
    except Exception:  # what a model takes for TeX is anything
        return ""


def _written(element: Any, depth: int) -> str:
    name = element.tag
    if name not in _ELEMENTS or depth > DEPTH:
        raise ValueError(f"no {name} here")
    attributes = "".join(
        f' {key}="{value}"' for key, value in element.attrib.items() if key in _ATTRIBUTES and _VALUE.fullmatch(value)
    )
    text = html.escape(html.unescape(element.text or ""))
    if text.startswith("\\") and name == "mi":
        raise ValueError(f"{text} is not known")
    return f"<{name}{attributes}>{text}{''.join(_written(inner, depth + 1) for inner in element)}</{name}>"
