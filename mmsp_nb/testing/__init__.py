"""A fake provider for tests: a real HTTP server on 127.0.0.1 that answers from a script.

::

    from mmsp_nb.testing import FakeProvider, Reply, streams

    with FakeProvider(streams.reply("tools", "chat"), streams.reply("text", "chat")) as provider:
        client = AutoLLMClient("any-model", "key", provider.url("/v1"), "openai-chat")
        ...
        assert provider.requests[1].body["messages"][-1]["role"] == "tool"

`streams` has canonical answers in every dialect, `faults` has what can go wrong by name, `wire` writes any answer in
any dialect with the oddities of real servers, `parts` is what an answer is made of. pytest fixtures are in
`mmsp_nb.testing.plugin`.
"""

from mmsp_nb.testing import faults, parts, streams, wire
from mmsp_nb.testing.connection import RecordedRequest
from mmsp_nb.testing.gate import Gate
from mmsp_nb.testing.provider import FakeProvider
from mmsp_nb.testing.reply import Cut, Reply
from mmsp_nb.testing.sse import Frame, Style, encode

__all__ = [
    "Cut",
    "FakeProvider",
    "Frame",
    "Gate",
    "RecordedRequest",
    "Reply",
    "Style",
    "encode",
    "faults",
    "parts",
    "streams",
    "wire",
]
