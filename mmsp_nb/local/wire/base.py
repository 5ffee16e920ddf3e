"""What every wire module offers, and the helpers they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from .neutral import Ask, BadRequest, Delta, Finish, Image, Part, Say, Text, Tool, Usage


class Encoder(Protocol):
    """Turns the fragments of one answer into the frames of one vendor's stream.

    Call `start` once, `push` for each fragment, then either `finish` or `fail`. ``usage=None`` leaves the
    usage out, as some gateways do.
    """

    def start(self) -> Iterable[bytes]: ...

    def push(self, delta: Delta) -> Iterable[bytes]: ...

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]: ...

    def fail(self, status: int, message: str) -> Iterable[bytes]: ...


class Wire(Protocol):
    """The functions of a wire module; ``NAME`` tells it apart in logs and tests."""

    NAME: str

    def read(self, body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
        """The request as an `Ask`. ``model`` and ``stream`` come from the path where the vendor puts them there.

        Raises BadRequest when a required field is missing or of the wrong type.
        """

    def encoder(self, ask: Ask, usage: Usage | None = None) -> Encoder:
        """``usage`` is what is known beforehand: Messages reports the input in its first frame."""

    def document(self, ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
        """The whole answer as one JSON document, for a request that did not ask for a stream."""

    def error(self, status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
        """The body of a refusal, as this vendor words it."""


def need(body: Mapping[str, Any], key: str, kind: type | tuple[type, ...], message: str, **more: Any) -> Any:
    """``body[key]``, which must be of ``kind`` and not empty text; else a BadRequest with ``message``."""
    value = body.get(key)
    if not isinstance(value, kind) or value == "":
        raise BadRequest(message, param=key, **more)
    return value


def records(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a list; everything else is left out."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def budget(value: Any) -> int | None:
    """A token budget: a positive whole number, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def content(value: Any) -> list[Part]:
    """Text and images of a message's content, in the spelling of any of the OpenAI and Anthropic formats."""
    if isinstance(value, str):
        return [Text(value)]
    parts: list[Part] = []
    for entry in records(value):
        kind, url = entry.get("type"), entry.get("image_url")
        if kind in ("text", "input_text", "output_text"):
            parts.append(Text(str(entry.get("text") or "")))
        elif kind == "refusal":
            parts.append(Text(str(entry.get("refusal") or "")))
        elif kind in ("image_url", "input_image"):
            parts.append(Image(str(url.get("url") if isinstance(url, Mapping) else url or "")))
        elif kind == "image":
            source = mapping(entry.get("source"))
            data = f"data:{source.get('media_type')};base64,{source.get('data')}"
            parts.append(Image(str(source.get("url")) if source.get("type") == "url" else data))
    return parts


def tool(entry: Mapping[str, Any], schema: str = "parameters") -> Tool:
    """A declared function; ``schema`` is the vendor's name for its JSON Schema."""
    return Tool(str(entry.get("name") or ""), str(entry.get("description") or ""), mapping(entry.get(schema)))


def effort(value: Any) -> bool:
    """Whether a reasoning effort asks for reasoning."""
    return isinstance(value, str) and value.lower() not in ("", "none", "minimal")
