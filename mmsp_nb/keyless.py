"""`KeyMask`: takes keys out of what a model is to read, and counts them by the place where they stood.

It works on what is new: a prompt, a system prompt, the descriptions of tools, the results of calls. A history is not
looked through again. Clients know nothing of it: they send what they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mmsp_nb.masking import conceal, concealable, environment_secrets, remembered

__all__ = ["KeyMask", "client_secrets", "said"]

_Message = TypeVar("_Message", bound=Mapping[str, Any])

_PLACES = {
    "prompt": "in the prompt",
    "system": "in the system prompt",
    "tools": "in the descriptions of tools",
    "results": "in the results of tools",
}


class KeyMask:
    """Replaces keys by ``***``, behind a prefix such as ``sk-ant-`` that tells what was there.

    Args:
        secrets: Values that are keys, beside those of the environment's variables and of all clients that have drawn
            an answer in this process.

    Attributes:
        found: How many keys were replaced, by place: ``prompt``, ``system``, ``tools`` (their descriptions),
            ``results``. Only places with any.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = concealable({*environment_secrets(), *remembered, *secrets})
        self._begin()

    def _begin(self) -> None:
        self.found: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._tools: tuple[Any, Any] = None, None

    @classmethod
    def of(cls, client: Any) -> KeyMask:
        """One that knows the keys of ``client`` too."""
        return cls(client_secrets(client))

    def again(self) -> KeyMask:
        """One that knows the same keys, and has found none."""
        other = object.__new__(KeyMask)
        other._known = self._known
        other._begin()
        return other

    def text(self, text: str, place: str) -> str:
        """``text`` without keys."""
        clean, count = conceal(text, self._known)
        if count:
            self.found[place] = self.found.get(place, 0) + count
        return clean

    def message(self, message: _Message, place: str = "prompt") -> _Message:
        """The message without keys in its texts; the same one when there are none. Fidelity and pictures stay."""
        items = [self._item(item, place) for item in message["content_items"]]
        if all(new is old for new, old in zip(items, message["content_items"], strict=True)):
            return message
        changed: Any = {**message, "content_items": items}
        return changed

    def _item(self, item: Mapping[str, Any], place: str) -> Mapping[str, Any]:
        kind, said = item["type"].partition(".")[0], item.get("text")
        if kind not in ("text", "tool_result") or not isinstance(said, str):
            return item
        clean = self.text(said, place)
        return item if clean is said or clean == said else {**item, "text": clean}

    def config(self, config: dict[str, Any]) -> dict[str, Any]:
        """A request's config without keys in its system prompt and tools. Each of them is counted once."""
        changed: dict[str, Any] = {}
        if isinstance(system := config.get("system_prompt"), str):
            if system not in self._texts:
                self._texts[system] = self.text(system, "system")
            changed["system_prompt"] = self._texts[system]
        if tools := config.get("tools"):
            if tools != self._tools[0]:
                # looked through at once first: there are many short texts in it, and hardly ever a key
                clean = not conceal("\n".join(_texts_in(tools)), self._known)[1]
                self._tools = tools, tools if clean else self._plain(tools)
            changed["tools"] = self._tools[1]
        return {**config, **changed} if any(changed[name] is not config[name] for name in changed) else config

    def _plain(self, value: Any) -> Any:
        """Data of JSON without keys; the same object when there are none."""
        if isinstance(value, str):
            clean = self.text(value, "tools")
            return value if clean == value else clean
        if isinstance(value, dict):
            inner = {key: self._plain(each) for key, each in value.items()}
            return value if all(inner[key] is each for key, each in value.items()) else inner
        if isinstance(value, list):
            items = [self._plain(each) for each in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def outcome(self, outcome: Any) -> None:
        """Take keys out of what the model reads of a `ToolOutcome`; the object that the tool returned stays."""
        outcome.text = self.text(outcome.text, "results")


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def client_secrets(client: Any) -> set[str]:
    """What ``client`` was given that is a key: its key, headers that are called so, and what its address holds."""
    route = getattr(getattr(client, "_endpoint", None), "route", None)
    if route is None:
        return set()
    from mmsp_nb.providers.routing import Route

    if not isinstance(route, Route):
        return set()
    from mmsp_nb.transport.redaction import url_secrets
    from mmsp_nb.transport.wire import Headers

    key, address = (value if isinstance(value, str) else "" for value in (route.api_key, route.base_url))
    found = {key, *Headers(route.headers).secrets(), *url_secrets(address)}
    if key.count(",") == 1:  # Amazon's pair
        found.update(part.strip() for part in key.split(","))
    return found - {""}


def said(found: Mapping[str, int], before: Mapping[str, int] | None = None, *, ahead: bool = False) -> str:
    """What was replaced, in one line for a person; empty for nothing.

    Of a system prompt and of tools nothing is said when as many were found the time ``before``: it was said then.
    ``ahead`` is for what would be sent.
    """
    known = before or {}
    places = [
        (count, words)
        for place, words in _PLACES.items()
        if (count := found.get(place, 0)) and (place in ("prompt", "results") or known.get(place) != count)
    ]
    if not places:
        return ""
    first, *more = (f"{count} {words}" for count, words in places)
    first = first.replace(" ", " key " if places[0][0] == 1 else " keys ", 1)
    one = sum(count for count, _ in places) == 1
    verb = ("is" if one else "are") if ahead else ("was" if one else "were")
    then = f"{'does' if ahead else 'did'} not read {'it' if one else 'them'}"
    return f"{' and '.join([first, *more])} {verb} replaced by ***; the model {then}"
