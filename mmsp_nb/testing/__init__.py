"""A fake provider for tests: a real HTTP server on 127.0.0.1 that answers from a script.

::

    from mmsp_nb.testing import FakeProvider, Reply, streams

    with FakeProvider(streams.reply("tools", "chat"), streams.reply("text", "chat")) as provider:
        client = AutoLLMClient("any-model", "key", provider.url("/v1"), "openai-chat")
        ...
        assert provider.requests[1].body["messages"][-1]["role"] == "tool"

`streams` has canonical answers in every dialect, `faults` has what can go wrong by name, `wire` writes any answer in
any dialect with the oddities of real servers, `parts` is what an answer is made of. `assert_called` and its kin look at
what a conversation did. What pytest gets of it is in `mmsp_nb.testing.plugin`.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from typing import Any

    from mmsp_nb.testing import faults, parts, streams, wire
    from mmsp_nb.testing.asserts import assert_called, assert_not_called, assert_said
    from mmsp_nb.testing.connection import RecordedRequest
    from mmsp_nb.testing.gate import Gate
    from mmsp_nb.testing.provider import FakeProvider
    from mmsp_nb.testing.reply import Cut, Reply
    from mmsp_nb.testing.sse import Frame, Style, encode

_MODULE_OF = {
    "Cut": "reply",
    "FakeProvider": "provider",
    "Frame": "sse",
    "Gate": "gate",
    "RecordedRequest": "connection",
    "Reply": "reply",
    "Style": "sse",
    "assert_called": "asserts",
    "assert_not_called": "asserts",
    "assert_said": "asserts",
    "encode": "sse",
}
_MODULES = ("faults", "parts", "streams", "wire")

__all__ = [
    "Cut",
    "FakeProvider",
    "Frame",
    "Gate",
    "RecordedRequest",
    "Reply",
    "Style",
    "assert_called",
    "assert_not_called",
    "assert_said",
    "encode",
    "faults",
    "parts",
    "streams",
    "wire",
]


def __getattr__(name: str) -> "Any":  # loaded when used: the pytest plugin is part of every run of pytest
    if name in _MODULES:
        return _import_module(f"mmsp_nb.testing.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'mmsp_nb.testing' has no attribute {name!r}")
    value = getattr(_import_module(f"mmsp_nb.testing.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
