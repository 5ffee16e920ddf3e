"""Short ways to a request body and to the items of a stream."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from typing import Any

from mmsp_nb.protocol.assembly import EventStream
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.providers.base import Request
from mmsp_nb.providers.routing import Route, resolve
from mmsp_nb.providers.vendors import VENDORS, Vendor

MODELS = {
    "openai-official": "gpt-5.5",
    "openai-responses": "openai/gpt-5.5",
    "deepseek-official": "deepseek-flash",
    "minimax-official": "MiniMax-M3",
    "openai-chat": "some-model",
    "openai-chat-vllm-adapter": "some-model",
    "zai-official": "glm-5.2",
    "moonshot-official": "kimi-k3",
    "anthropic-official": "claude-opus-5",
    "ant-messages": "some-model",
    "google-official": "gemini-3.5-flash",
    "google-genai": "gemini-3.5-flash",
    "openai-embedding": "text-embedding-3-large",
    "mmsp": "fast",
}
"""A model for each client type, with the plainest rules."""

PNG = "data:image/png;base64,iVBORw0KGgo="


def text(value: str, **fidelity: Any) -> dict[str, Any]:
    return _item("text", fidelity, text=value)


def thinking(value: str, **fidelity: Any) -> dict[str, Any]:
    return _item("thinking", fidelity, thinking=value)


def call(name: str, call_id: str, arguments: dict[str, Any] | None = None, **fidelity: Any) -> dict[str, Any]:
    return _item("tool_call", fidelity, name=name, arguments=arguments or {}, tool_call_id=call_id)


def result(value: str, call_id: str, *images: str) -> dict[str, Any]:
    return _item("tool_result", {"images": list(images)} if images else {}, flat=True, text=value, tool_call_id=call_id)


def image(url: str = PNG) -> dict[str, Any]:
    return _item("image_url", {}, image_url=url)


def inline(kind: str = "inline_data", data: bytes = b"\xfb\xff\x00", mime: str = "image/png", **fidelity: Any) -> Any:
    return _item(kind, fidelity, data=data, mime_type=mime)


def _item(kind: str, extra: dict[str, Any], flat: bool = False, **fields: Any) -> dict[str, Any]:
    rest = extra if flat else {"fidelity": extra} if extra else {}
    return {"type": f"{kind}.done", **fields, **rest}


def user(*items: Any) -> Any:
    return {"role": "user", "content_items": list(items)}


def assistant(*items: Any) -> Any:
    return {"role": "assistant", "content_items": list(items)}


HI = [user(text("hi"))]


def route(client_type: str, model: str | None = None, key: str = "sk-test", **options: Any) -> Route:
    return resolve(model or MODELS[client_type], key, client_type=client_type, environ={}, **options)


def requests(client_type: str, model: str | None = None, messages: Any = HI, /, **config: Any) -> list[Request]:
    found = route(client_type, model)
    return dialect(found.vendor).build(found.vendor, found.model, messages, config)


def body(client_type: str, model: str | None = None, messages: Any = HI, /, **config: Any) -> Any:
    """The body of the only request, as it arrives."""
    (request,) = requests(client_type, model, messages, **config)
    return json.loads(json.dumps(request.body))


def changes(client_type: str, model: str | None = None, /, **config: Any) -> dict[str, Any]:
    """What a config adds to the plain body."""
    plain, configured = body(client_type, model), body(client_type, model, **config)
    return {key: value for key, value in configured.items() if plain.get(key) != value}


def dialect(vendor: Vendor) -> Any:
    return importlib.import_module(f"mmsp_nb.providers.{vendor.dialect}")


def decode(client_type: str, events: Iterable[Any], model: str | None = None) -> list[dict[str, Any]]:
    """The raw values of a stream."""
    vendor = VENDORS[client_type]
    decoder = dialect(vendor).decoder(vendor, model or MODELS[client_type])
    raws = [raw for event in events for raw in decoder.decode(event)]
    return [*raws, *decoder.finish()]


def answer(client_type: str, events: Iterable[Any], model: str | None = None) -> Any:
    """The assistant's message of a stream, without its time."""
    stream = EventStream(VENDORS[client_type].client)
    stream.push(decode(client_type, events, model), [])
    stream.close([])
    assert stream.message is not None
    return {key: value for key, value in stream.message.items() if key not in ("role", "created_at")}


def attributes(error: MMSPError) -> dict[str, Any]:
    """The attributes of an error that say something."""
    return {key: value for key, value in vars(error).items() if key in error.fields and value is not None}
