"""What the dialects share on the way out: config tables, rejections, tool arguments; and token arithmetic.

A dialect says with a table how each config key reaches its body: ``{key: field name}`` for a plain
copy, ``{key: function(draft, value)}`` otherwise. Keys of the protocol that are in no table are
ignored, as the protocol wants; keys of our own raise, because silence would look like success.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from mmsp_nb.protocol.errors import InvalidMessageError, UnsupportedContentError, UnsupportedParameterError
from mmsp_nb.protocol.items import Item, UniConfig
from mmsp_nb.providers.base import ModelPage, Request
from mmsp_nb.providers.vendors import Vendor

OWN_KEYS = ("top_p", "stop", "seed", "parallel_tool_calls", "response_format")
"""Config keys beyond the protocol's which not every wire has."""

JSON_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}

Setter = Callable[["Draft", Any], None]

_DONE_KINDS = frozenset(
    "text thinking inline_data inline_thinking tool_call tool_result image_url embedding".split()  # noqa: SIM905
)


class Draft:
    """One request in the making: the body, and what is needed to say why it cannot be made."""

    __slots__ = ("body", "config", "headers", "model", "vendor")

    def __init__(self, vendor: Vendor, model: str, config: UniConfig, body: dict[str, Any]) -> None:
        self.vendor = vendor
        self.model = model
        self.config: dict[str, Any] = {key: value for key, value in config.items() if value is not None}
        self.body = body
        self.headers: dict[str, str] = {}

    def rule(self, key: str, default: Any = None) -> Any:
        return self.vendor.rule(key, self.model, default)

    def reject(self, parameter: str, why: str) -> UnsupportedParameterError:
        """The exception for a config value that this vendor or model refuses."""
        message = f"{parameter}: {why} (model {self.model!r}, client type {self.vendor.name!r})"
        return UnsupportedParameterError(message, client=self.vendor.client, parameter=parameter)

    def choose(self, parameter: str, table: Mapping[str, Any] | None, value: Any) -> Any:
        """A private copy of ``table[value]``; UnsupportedParameterError when it has no such row."""
        if table is None or value not in table:
            raise self.reject(parameter, f"{value!r} is not supported; {_either(table or ())}")
        return copy.deepcopy(table[value])

    def put(self, section: str, key: str, value: Any) -> None:
        """Set ``key`` inside the object ``section`` of the body, made when missing."""
        self.body.setdefault(section, {})[key] = value

    def apply(self, table: Mapping[str, str | Setter]) -> None:
        """Map the whole config by a table of this dialect, in the table's order."""
        config = {"prompt_caching": "enable", **self.config}
        for key in OWN_KEYS:
            if key in config and (key not in table or self.rule(key) is False):
                raise self.reject(key, "this wire format has no such option; use extra_body if the server does")
        for key, setter in table.items():
            if key in config:
                if isinstance(setter, str):
                    self.body[setter] = config[key]
                else:
                    setter(self, config[key])

    def request(self, path: str, headers: Mapping[str, str] = JSON_HEADERS, **options: Any) -> Request:
        """The finished request: ``extra_body`` merged last, ``extra_headers`` over the dialect's own."""
        body = _merged(self.body, self.config.get("extra_body") or {})
        every = with_headers(headers, self.headers, self.config.get("extra_headers") or {})
        return Request(path, body, every, **options)

    # Rejections of items, in the protocol's spelling: known kinds without the suffix

    def invalid(self, item: Item | str, why: str = "") -> InvalidMessageError:
        """The exception for an item that cannot be sent."""
        kind = _kind(item)
        message = f"{kind} item: {why or 'this client cannot send it'}"
        return InvalidMessageError(message, client=self.vendor.client, item_type=kind)

    def unsupported(self, item: Item | str, why: str = "") -> UnsupportedContentError:
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
        call_id = item.get("tool_call_id")
        if not call_id:
            raise self.invalid(item, "tool_call_id is missing: repeat that of the call")
        return call_id


# Setters for keys that work alike in several dialects -----------------------------------------------


def set_temperature(draft: Draft, value: float, section: str | None = None) -> None:
    low, high, sent = draft.rule("temperature")
    if not low <= value <= high:
        allowed = "leave it out" if low > high else f"only {low:g}" if low == high else f"from {low:g} to {high:g}"
        raise draft.reject("temperature", f"{value!r} is not supported, {allowed}")
    if sent:
        target = draft.body.setdefault(section, {}) if section else draft.body
        target["temperature"] = value


def set_fast_mode(draft: Draft, value: Any) -> None:
    if value:
        piece = draft.rule("fast_mode")
        if piece is None:
            raise draft.reject("fast_mode", "there is no fast tier here, leave it out")
        draft.body.update(piece)


def set_caching(draft: Draft, value: str) -> None:
    draft.body.update(draft.choose("prompt_caching", draft.rule("prompt_caching"), value))


def set_thinking(draft: Draft, value: str) -> None:
    table = draft.rule("thinking")
    if table is not None:
        draft.body.update(draft.choose("thinking_level", table, value))


def check_tool_choice(draft: Draft, value: str | list[str]) -> None:
    """UnsupportedParameterError unless the vendor takes this kind of choice for this model."""
    allowed = draft.rule("tool_choice")
    if isinstance(value, str):
        kind = value
    else:
        kind = ("nothing", "one")[len(value)] if len(value) < 2 else "many"
    if kind not in allowed:
        words = {"one": "a list with one name", "many": "a list of names"}
        raise draft.reject(
            "tool_choice", f"{value!r} is not supported; {_either(words.get(k, repr(k)) for k in allowed)}"
        )


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


# Smaller things -------------------------------------------------------------------------------------


def json_text(value: Any) -> str:
    """Tool arguments as the text that deltas carry: whole objects are dumped, None is empty."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def fidelity(item: Item) -> Mapping[str, Any]:
    return item.get("fidelity") or {}


def subtract(total: int | None, part: int | None) -> int | None:
    """What is left of ``total`` without ``part``. A gateway that counts ``part`` outside: ``total``."""
    if total is None or part is None:
        return total
    return total - part if total >= part else total


def page_of_data(payload: Any) -> ModelPage:
    """The model listing of everyone but Google: ``{"data": [{"id": ...}]}``."""
    rows = payload.get("data") if isinstance(payload, dict) else payload
    return ModelPage([row["id"] for row in rows or () if isinstance(row, dict) and row.get("id")])


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


def _kind(item: Item | str) -> str:
    kind = item if isinstance(item, str) else str(item.get("type"))
    return kind.removesuffix(".done") if kind.removesuffix(".done") in _DONE_KINDS else kind


def _either(words: Any) -> str:
    listed = sorted(map(str, words))
    return f"supported: {', '.join(listed)}" if listed else "leave it out"
