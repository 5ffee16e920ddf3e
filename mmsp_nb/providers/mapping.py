"""What the dialects share on the way out: config tables, rejections, tool arguments, model listings.

A dialect says with a table how each config key reaches its body: ``{key: "path.in.body"}`` for a plain
copy, ``{key: function(draft, value)}`` otherwise. Keys of the protocol that are in no table are
ignored, as the protocol wants; keys of our own raise, because silence would look like success.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from mmsp_nb.protocol.errors import (
    InvalidMessageError,
    UnsupportedContentError,
    UnsupportedOperationError,
    UnsupportedParameterError,
)
from mmsp_nb.protocol.items import Item, UniConfig
from mmsp_nb.providers.base import ModelPage, Request
from mmsp_nb.providers.vendors import JSON_HEADERS, Vendor

OWN_KEYS = ("top_p", "stop", "seed", "parallel_tool_calls", "response_format")
"""Config keys beyond the protocol's which not every wire has."""

Setter = Callable[["Draft", Any], None]
ConfigTable = Mapping[str, str | Setter]

_KINDS = ("text", "thinking", "inline_data", "inline_thinking", "tool_call", "tool_result", "image_url", "embedding")
_KIND = {f"{kind}.done": kind for kind in _KINDS}


class Draft:
    """One request in the making: the body, and what is needed to say why it cannot be made."""

    def __init__(self, vendor: Vendor, model: str, config: UniConfig, body: dict[str, Any]) -> None:
        self.vendor = vendor
        self.model = model
        self.config: dict[str, Any] = {key: value for key, value in config.items() if value is not None}
        self.body = {**body, **vendor.rules.get("body", {})}
        self.headers: dict[str, str] = {}

    def rule(self, key: str, default: Any = None) -> Any:
        return self.vendor.rule(key, self.model, default)

    def put(self, path: str, value: Any) -> None:
        """Set a field of the body; objects on the dotted path are made when missing."""
        *sections, key = path.split(".")
        target = self.body
        for section in sections:
            target = target.setdefault(section, {})
        target[key] = value

    def choose(self, parameter: str, table: Mapping[str, Any], value: Any) -> Any:
        """A private copy of ``table[value]``; UnsupportedParameterError when it has no such row."""
        if value not in table:
            raise self.reject(parameter, f"{value!r} is not supported, only {', '.join(map(str, table))}")
        return copy.deepcopy(table[value])

    def apply(self, table: ConfigTable) -> None:
        """Map the whole config by a table of the dialect, in the table's order."""
        config = {"prompt_caching": "enable", **self.config}
        for key in OWN_KEYS:
            if key in config and (key not in table or self.rule(key) is False):
                raise self.reject(key, "this wire format has no such option; if the server has one, use extra_body")
        for key, setter in table.items():
            if key not in config:
                continue
            if isinstance(setter, str):
                self.put(setter, config[key])
            else:
                setter(self, config[key])

    def maker(self, table: Mapping[str, Any], item: Item) -> Any:
        """The function of ``table`` for this type of item; InvalidMessageError when there is none."""
        found = table.get(item.get("type", ""))
        if found is None:
            raise self.invalid(item)
        return found

    def request(self, path: str, **options: Any) -> Request:
        """The finished request: ``extra_body`` merged last, ``extra_headers`` over the dialect's own."""
        own = self.rule("headers", JSON_HEADERS)
        headers = with_headers(own, self.headers, self.config.get("extra_headers") or {})
        return Request(path, _merged(self.body, self.config.get("extra_body") or {}), headers, **options)

    # Rejections. Items are named in the protocol's spelling: known kinds without the suffix

    def reject(self, parameter: str, why: str) -> UnsupportedParameterError:
        """The exception for a config value that this vendor or model refuses."""
        message = f"{parameter}: {why} (model {self.model!r}, client type {self.vendor.name!r})"
        return UnsupportedParameterError(message, client=self.vendor.client, parameter=parameter)

    def invalid(self, item: Item, why: str = "this client cannot send it") -> InvalidMessageError:
        """The exception for an item that cannot be sent."""
        kind = _kind(item)
        return InvalidMessageError(f"{kind} item: {why}", client=self.vendor.client, item_type=kind)

    def unsupported(self, item: Item, why: str = "") -> UnsupportedContentError:
        """The exception for a valid item that this model cannot read."""
        kind = _kind(item)
        message = f"{kind} item: {why or f'model {self.model!r} cannot read it'}"
        return UnsupportedContentError(message, client=self.vendor.client, item_type=kind)

    def nothing_to_send(self, index: int) -> InvalidMessageError:
        """The exception for a message of which nothing but thinking would remain."""
        message = f"message {index} holds nothing that can be sent (thinking alone does not count)"
        return InvalidMessageError(message, client=self.vendor.client, message_index=index)

    def result_id(self, item: Item) -> str:
        """The call that a tool result answers."""
        if call_id := item.get("tool_call_id"):
            return call_id
        raise self.invalid(item, "tool_call_id is missing, repeat that of the call")


# Setters for keys that work alike in several dialects -----------------------------------------------


def set_temperature(draft: Draft, value: float) -> None:
    low, high, sent = draft.rule("temperature")
    if not low <= value <= high:
        allowed = "leave it out" if low > high else f"only {low:g}" if low == high else f"from {low:g} to {high:g}"
        raise draft.reject("temperature", f"{value!r} is not supported, {allowed}")
    if sent:
        draft.body["temperature"] = value


def set_fast_mode(draft: Draft, value: Any) -> None:
    piece = draft.rule("fast_mode")
    if value and piece is None:
        raise draft.reject("fast_mode", "there is no fast tier here, leave it out")
    if value:
        draft.body.update(piece)


def set_caching(draft: Draft, value: str) -> None:
    draft.body.update(draft.choose("prompt_caching", draft.rule("prompt_caching"), value))


def set_thinking(draft: Draft, value: str) -> None:
    if (table := draft.rule("thinking")) is not None:
        draft.body.update(draft.choose("thinking_level", table, value))


def check_tool_choice(draft: Draft, value: str | list[str]) -> None:
    """UnsupportedParameterError unless the vendor takes this kind of choice for this model."""
    kind = value if isinstance(value, str) else "many" if len(value) > 1 else "one" if value else ""
    words = {"one": "a list with one name", "many": "a list of names"}
    allowed = draft.rule("tool_choice")
    if kind not in allowed:
        supported = ", ".join(sorted(words.get(kind, repr(kind)) for kind in allowed))
        raise draft.reject("tool_choice", f"{value!r} is not supported, only {supported}")


def as_list(value: str | list[str]) -> list[str]:
    """``stop`` for a wire that knows only lists."""
    return [value] if isinstance(value, str) else list(value)


def output_schema(draft: Draft, value: Mapping[str, Any]) -> dict[str, Any] | None:
    """What ``response_format`` asks for, flat: ``{"schema", "name"?, "strict"?, ...}``.

    Accepts the form of Chat Completions, ``{"type": "json_schema", "json_schema": {"name", "schema"}}``,
    and the flat one. None for ``json_object`` and ``text``, which carry no schema.
    """
    kind = value.get("type")
    if kind in ("json_object", "text"):
        return None
    flat = value.get("json_schema") or {key: part for key, part in value.items() if key != "type"}
    if kind != "json_schema" or not isinstance(flat.get("schema"), Mapping):
        raise draft.reject("response_format", "expected type 'text', 'json_object', or 'json_schema' with a schema")
    return dict(flat)


def json_text(value: Any) -> str:
    """Tool arguments as the text that deltas and some wires carry; None is empty."""
    return value if isinstance(value, str) else "" if value is None else _as_json(value)


def fidelity(item: Item) -> Mapping[str, Any]:
    return item.get("fidelity") or {}


# Model listings: these two functions are those of every dialect ---------------------------------------


def models_request(vendor: Vendor) -> Request:
    """UnsupportedOperationError where there is no listing."""
    path = vendor.rules.get("models_path", "/models")
    if path is None:
        message = f"{vendor.client} cannot list models over this transport"
        raise UnsupportedOperationError(message, client=vendor.client, operation="list_models")
    # what describes a body and a stream does not belong on a GET
    own = vendor.rules.get("headers", JSON_HEADERS)
    headers = {name: value for name, value in own.items() if name not in ("Accept", "Content-Type")}
    return Request(path, headers=headers, method="GET", framing="json")


def parse_models(payload: Any) -> ModelPage:
    """Google's ``models[].name`` (Vertex AI: ``publisherModels``), Anthropic's pages, everyone's ``data[].id``."""
    page = payload if isinstance(payload, dict) else {"data": payload}
    key = next((key for key in ("data", "models", "publisherModels") if isinstance(page.get(key), list)), "")
    rows = [row for row in page.get(key, ()) if isinstance(row, dict)]
    ids = [row.get("id") or str(row.get("name") or "").rsplit("/", 1)[-1] for row in rows]
    following = None
    if page.get("has_more") and page.get("last_id"):
        following = f"/v1/models?after_id={quote(str(page['last_id']), safe='')}"
    elif token := page.get("nextPageToken"):
        path = "/v1beta1/publishers/google/models" if key == "publisherModels" else "/v1/models"
        following = f"{path}?pageToken={quote(str(token), safe='')}"
    return ModelPage([model for model in ids if model], following)


_as_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps makes an encoder for each call

# Merging ----------------------------------------------------------------------------------------------


def with_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Headers merged without regard to case, the last of a name wins."""
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        merged.update({name.lower(): (name, value) for name, value in layer.items()})
    return dict(merged.values())


def _merged(base: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``extra`` laid over it, objects within objects too; neither is modified."""
    both = dict(base)
    for key, value in extra.items():
        deeper = isinstance(value, Mapping) and isinstance(both.get(key), Mapping)
        both[key] = _merged(both[key], value) if deeper else value
    return both


def _kind(item: Item) -> str:
    kind = str(item.get("type"))
    return _KIND.get(kind, kind)
