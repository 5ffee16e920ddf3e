"""Options whose values depend on the user's variables: ``{{expressions}}``, pictures, files, clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from inspect import ismodule
from pathlib import Path
from typing import Any

from mmsp_nb.protocol.suggestions import did_you_mean, shown

from .options import OPTIONS, OptionError, Options
from .prompt import expand

__all__ = ["client", "file_text", "image", "labelled", "near_file", "resolve"]

MAX_FILE = 100_000
"""Characters of a file that are sent."""

MAX_BESIDE = 2_000
"""Files of a folder among which one that was meant is looked for."""

CLOSE = 0.7
"""How alike the names of files must be to be taken for each other; short ones are alike by chance."""

MAX_BYTES = 50_000_000
"""A larger file is not read at all."""


def resolve(options: Options, namespace: Mapping[str, Any]) -> None:
    """Put the values of expressions in place, and pictures and files where they are named by variable or path."""
    for name, written in options.deferred:
        option = OPTIONS[name]
        value = expand(written, namespace)
        if option.attribute == "image" and isinstance(value, list):
            pictures = [part for part in value if isinstance(part, Mapping)]
            if len(pictures) != 1:
                raise OptionError(f"{name} {written} is {len(pictures)} pictures: give {name} once for each")
            options.image[options.image.index(written)] = pictures[0]
            continue
        if not isinstance(value, str):
            raise OptionError(f"{name} takes text, and {written} is a picture")
        assert option.read is not None
        read = option.read(name, value.strip() if option.attribute != "system" else value)
        if option.many:
            kept = getattr(options, option.attribute)
            kept[kept.index(written)] = read
        else:
            setattr(options, option.attribute, read)
    options.deferred = []


def image(value: Any, namespace: Mapping[str, Any]) -> Any:
    """The protocol item of a picture: out of a variable, a file, or at a URL. OptionError when it is none."""
    from mmsp_nb import media
    from mmsp_nb.protocol.errors import InvalidMessageError

    if isinstance(value, Mapping):  # out of an expression
        return value
    try:
        if value in namespace:
            return _item(media.image_url(namespace[value]))
        if not re.match(r"(https?|data):", value, re.IGNORECASE):
            path = Path(value).expanduser()
            _ordinary("--image", value, path)
            if not path.is_file():
                near = near_file(path) or ("" if path.suffix else did_you_mean(value, _values(namespace)))
                raise OptionError(f"--image {value}: there is no such variable or file{near}")
            return _item(media.image_url(path))
        return _item(media.image_url(value))
    except InvalidMessageError as error:
        raise OptionError(f"--image {value}: {error.message}") from None


def _item(url: str) -> dict[str, Any]:
    return {"type": "image_url.done", "image_url": url}


def file_text(written: str) -> str:
    """The content of a text file, labelled with its name, and bounded. OptionError when it cannot be read as text."""
    if re.match(r"[a-z][a-z0-9+.-]+://", written, re.IGNORECASE):
        raise OptionError(f"--file takes the path of a file on this machine, not an address such as {written}")
    path = Path(written).expanduser()
    _ordinary("--file", written, path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise OptionError(
                f"--file {written} has more than {MAX_BYTES // 1_000_000} MB: show the model a part of it"
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise OptionError(f"--file {written}: there is no such file{near_file(path)}") from None
    except (OSError, ValueError) as error:
        raise OptionError(f"--file {written}: {getattr(error, 'strerror', None) or error}") from None
    try:
        text = data.decode("utf-8-sig")
        if "\0" in text:
            raise ValueError
    except ValueError:
        raise OptionError(f"--file {written} is no text in UTF-8; pictures go with --image") from None
    return labelled(path.name, text)


def _ordinary(option: str, written: str, path: Path) -> None:
    """OptionError for a folder, and for a device or pipe, which may have no end."""
    if path.is_dir():
        raise OptionError(f"{option} {written} is a folder")
    if path.exists() and not path.is_file():
        raise OptionError(f"{option} {written} is a device or a pipe, not a file")


def labelled(name: str, text: str) -> str:
    """The content of a text file as a model gets it: below its name, fenced, and bounded."""
    rest = len(text) - MAX_FILE
    if rest > 0:
        text = f"{text[:MAX_FILE]}\n[... {rest:,} more characters]"
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{name}:\n{fence}\n{text.rstrip(chr(10))}\n{fence}"


def client(name: str, namespace: Mapping[str, Any]) -> Any:
    """The client in that variable. OptionError when there is none, or it is no client."""
    value = namespace.get(name)
    if value is None:
        near = did_you_mean(
            name, [n for n in _names(namespace) if hasattr(namespace[n], "streaming_response_stateful")]
        )
        if not near:
            from mmsp_nb.providers.vendors import VENDORS

            if name in VENDORS:
                near = f"; for a client type write --client-type {name}"
        raise OptionError(f"--client {name}: there is no such variable{near}")
    if isinstance(value, type):
        raise OptionError(f"--client {name} is the class {value.__name__}: make an object of it")
    if not callable(getattr(value, "streaming_response_stateful", None)):
        hint = f"; a Conversation is used by %mmsp use {name}" if hasattr(value, "turns") else ""
        raise OptionError(f"--client {name} is no client: {shown(value)} has no streaming_response_stateful(){hint}")
    return value


def _names(namespace: Mapping[str, Any]) -> list[str]:
    return [name for name in namespace if not name.startswith("_")]


def _values(namespace: Mapping[str, Any]) -> list[str]:
    """Variables that may hold a picture: no functions, classes and modules."""
    return [name for name in _names(namespace) if not callable(namespace[name]) and not ismodule(namespace[name])]


def near_file(path: Path) -> str:
    """``"; did you mean 'notes.md'?"`` for a file of nearly that name; or that there is no folder."""
    folder = path.parent
    try:
        names = {each.name.lower(): each.name for each in sorted(folder.iterdir())[:MAX_BESIDE]}
    except (OSError, ValueError):
        return "" if folder.is_dir() else f"; there is no folder {folder}"
    near = get_close_matches(path.name.lower(), names, 1, CLOSE)
    return f"; did you mean {str(folder / names[near[0]])!r}?" if near else ""
