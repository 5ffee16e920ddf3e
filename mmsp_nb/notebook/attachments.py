"""A question out of the inspector's box: its text with ``{{expressions}}``, and the files that came with it.

What a page sends is checked here again: pictures by their bytes, texts by their length. Nothing is asked before all
of it has been read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from mmsp_nb import media
from mmsp_nb.protocol.errors import InvalidMessageError
from mmsp_nb.protocol.items import Item
from mmsp_nb.turns import Turn

from .options import OptionError
from .prompt import expand
from .resolving import labelled
from .sanitize import single_line
from .secrets import mask

__all__ = ["kept_pictures", "names", "pictures", "question", "typed"]

FILES = 10
"""Files with one question at most."""

NAMES = 12
"""Variables that are offered at once."""


def question(message: Mapping[str, Any], namespace: Mapping[str, Any], edited: Turn | None = None) -> str | list[Any]:
    """The prompt of what a page sends: ``text``, ``files``, and ``kept`` pictures of the turn that is edited.

    Args:
        message: ``files`` are dicts with ``name`` and ``kind``: ``image`` with a data URL as ``data``, or ``text`` with
            the content as ``text``.
        namespace: The user's variables, for the expressions in ``text``. Nothing else in it is evaluated.

    Returns:
        A text, or a list of texts and pictures as `Conversation.ask` takes them.

    Raises:
        OptionError: One line about what is wrong with an expression or a file.
    """
    text = str(message.get("text") or "")
    parts = expand(text, namespace) if text.strip() else ""
    said: list[Any] = [parts] if isinstance(parts, str) else list(parts)
    files = message.get("files") or ()
    if not isinstance(files, list | tuple) or len(files) > FILES:
        raise OptionError(f"{FILES} files at most can be attached")
    texts, images = [], _kept(message.get("kept") or (), edited)
    for file in files:
        name = single_line(str(file.get("name") or "file"), 120)
        if file.get("kind") == "image":
            images.append(_picture(name, str(file.get("data") or "")))
        else:
            texts.append(labelled(name, str(file.get("text") or "")))
    if texts:
        last = said.pop() if said and isinstance(said[-1], str) else ""
        said.append("\n\n".join(part for part in (last, *texts) if part))
    found = [part for part in [*images, *said] if part != ""]
    return found[0] if len(found) == 1 and isinstance(found[0], str) else found


def _kept(numbers: Iterable[Any], edited: Turn | None) -> list[Any]:
    there = [] if edited is None else pictures(edited)
    return [there[n] for n in numbers if isinstance(n, int) and 0 <= n < len(there)]


def _picture(name: str, url: str) -> dict[str, Any]:
    head, _, body = url.partition(",")
    if not head.lower().startswith("data:") or not head.lower().endswith(";base64"):
        raise OptionError(f"{name} is no picture")
    try:
        found = media.picture(base64.b64decode(body, validate=True))
    except InvalidMessageError as error:
        raise OptionError(f"{name}: {error.message}") from None
    except (binascii.Error, ValueError):
        raise OptionError(f"{name} came damaged: attach it again") from None
    return {"type": "image_url.done", "image_url": found.url}


def pictures(turn: Turn) -> list[Item]:
    """The pictures of a turn's question."""
    first = turn.messages[0]["content_items"] if turn.messages else []
    return [item for item in first if item["type"] in ("image_url.done", "inline_data.done")]


def kept_pictures(turn: Turn) -> list[dict[str, Any]]:
    """What a page shows of them while the question is edited."""
    from .rows import media_of

    shown = []
    for number, item in enumerate(pictures(turn)):
        found = media_of(item)
        one = {"kept": number, "name": found.get("label") or "picture"}
        shown.append({**one, "src": found["src"]} if found.get("media") == "image" and "src" in found else one)
    return shown


def typed(turn: Turn) -> str:
    """The text of a question as it would have to be typed: what stands in it is not evaluated a second time.

    A question may hold text of others (a table, a file), and ``{{`` in it is theirs.
    """
    return mask(turn.prompt).replace("{{", "\\{{")


def names(word: str, namespace: Mapping[str, Any]) -> list[str]:
    """Variables that begin with ``word``, those of the user first made last."""
    found = [
        name
        for name, value in namespace.items()
        if name.startswith(word) and not name.startswith("_") and not _is_furniture(name, value)
    ]
    return [single_line(name, 60) for name in reversed(found)][:NAMES]


def _is_furniture(name: str, value: Any) -> bool:
    """What IPython puts into every namespace."""
    return name in ("In", "Out", "exit", "quit", "open", "get_ipython") or type(value).__name__ == "module"
