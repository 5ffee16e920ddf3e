"""Language models in a notebook: ``%%mmsp`` cells, functions as tools, conversations as objects.

Public names are loaded when they are first used, so that ``import mmsp_nb`` costs next to nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from mmsp_nb._version import __version__

if _TYPE_CHECKING:  # the same names once more, for type checkers and editors
    from typing import Any

    from mmsp_nb.agent import Agent
    from mmsp_nb.client import AutoLLMClient
    from mmsp_nb.comparing import diff
    from mmsp_nb.conversation import Answer, Conversation, Turn
    from mmsp_nb.files import load
    from mmsp_nb.mapping import MapError, Mapped, NotAskedError, amap
    from mmsp_nb.mapping import map as map
    from mmsp_nb.money import BudgetExceededError, spending
    from mmsp_nb.notebook.inspector import chat, inspect
    from mmsp_nb.protocol.abort import AbortSignal
    from mmsp_nb.protocol.errors import (
        AbortError,
        ApiKeyRequiredError,
        AuthenticationError,
        CassetteMissError,
        ConcurrentCallError,
        ConnectionCutError,
        ConnectionFailedError,
        EmptyResponseError,
        HTTPStatusError,
        IncompleteStreamError,
        InvalidMessageError,
        MMSPError,
        ProviderStreamError,
        RateLimitError,
        RequestTimeoutError,
        ResponseFormatError,
        ResponseTooLargeError,
        RoutingError,
        StreamProtocolError,
        ToolCallArgumentParseError,
        TransportError,
        UnknownEventError,
        UnsupportedContentError,
        UnsupportedOperationError,
        UnsupportedParameterError,
        UpstreamError,
    )
    from mmsp_nb.protocol.history import normalize_legacy_messages
    from mmsp_nb.protocol.items import (
        EventType,
        FinishReason,
        PromptCaching,
        Role,
        ThinkingLevel,
        ToolSchema,
        UniConfig,
        UniEvent,
        UniMessage,
        UsageMetadata,
    )
    from mmsp_nb.restoring import ConversationFileError
    from mmsp_nb.tools import Policy, Tool, ToolOutcome, ToolRegistry, tool
    from mmsp_nb.traces import traces
    from mmsp_nb.transport.cassette import Cassette
    from mmsp_nb.transport.http import Transport
    from mmsp_nb.transport.wire import Timeouts
    from mmsp_nb.typed import TypedAnswerError

_HOME = {
    "agent": "Agent",
    "client": "AutoLLMClient",
    "comparing": "diff",
    "conversation": "Answer Conversation Turn",
    "files": "load",
    "mapping": "MapError Mapped NotAskedError amap map",
    "money": "BudgetExceededError spending",
    "notebook.inspector": "chat inspect",
    "protocol.abort": "AbortSignal",
    "protocol.errors": """
        AbortError ApiKeyRequiredError AuthenticationError CassetteMissError ConcurrentCallError ConnectionCutError
        ConnectionFailedError EmptyResponseError HTTPStatusError IncompleteStreamError InvalidMessageError MMSPError
        ProviderStreamError
        RateLimitError RequestTimeoutError ResponseFormatError ResponseTooLargeError RoutingError StreamProtocolError
        ToolCallArgumentParseError TransportError UnknownEventError UnsupportedContentError
        UnsupportedOperationError UnsupportedParameterError UpstreamError
    """,
    "protocol.history": "normalize_legacy_messages",
    "protocol.items": """
        EventType FinishReason PromptCaching Role ThinkingLevel ToolSchema UniConfig UniEvent UniMessage UsageMetadata
    """,
    "restoring": "ConversationFileError",
    "tools": "Policy Tool ToolOutcome ToolRegistry tool",
    "transport.cassette": "Cassette",
    "traces": "traces",
    "transport.http": "Transport",
    "transport.wire": "Timeouts",
    "typed": "TypedAnswerError",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

# `map` is public and not among them: ``from mmsp_nb import *`` must not hide Python's own
__all__ = [
    "AbortError",
    "AbortSignal",
    "Agent",
    "Answer",
    "ApiKeyRequiredError",
    "AuthenticationError",
    "AutoLLMClient",
    "BudgetExceededError",
    "Cassette",
    "CassetteMissError",
    "ConcurrentCallError",
    "ConnectionCutError",
    "ConnectionFailedError",
    "Conversation",
    "ConversationFileError",
    "EmptyResponseError",
    "EventType",
    "FinishReason",
    "HTTPStatusError",
    "IncompleteStreamError",
    "InvalidMessageError",
    "MMSPError",
    "MapError",
    "Mapped",
    "NotAskedError",
    "Policy",
    "PromptCaching",
    "ProviderStreamError",
    "RateLimitError",
    "RequestTimeoutError",
    "ResponseFormatError",
    "ResponseTooLargeError",
    "Role",
    "RoutingError",
    "StreamProtocolError",
    "ThinkingLevel",
    "Timeouts",
    "Tool",
    "ToolCallArgumentParseError",
    "ToolOutcome",
    "ToolRegistry",
    "ToolSchema",
    "Transport",
    "TransportError",
    "Turn",
    "TypedAnswerError",
    "UniConfig",
    "UniEvent",
    "UniMessage",
    "UnknownEventError",
    "UnsupportedContentError",
    "UnsupportedOperationError",
    "UnsupportedParameterError",
    "UpstreamError",
    "UsageMetadata",
    "__version__",
    "allow_nested_asyncio",
    "amap",
    "chat",
    "diff",
    "inspect",
    "load",
    "load_ipython_extension",
    "normalize_legacy_messages",
    "spending",
    "tool",
    "traces",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> "Any":
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'mmsp_nb' has no attribute {name!r}")
    value = getattr(_import_module(f"mmsp_nb.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULE_OF} | {name for name in globals() if name.startswith("__")})


def load_ipython_extension(ipython: "Any") -> None:
    """``%load_ext mmsp_nb``: register the magics."""
    from mmsp_nb import notebook

    notebook.load_ipython_extension(ipython)


def unload_ipython_extension(ipython: "Any") -> None:
    """``%unload_ext mmsp_nb``: take back what `load_ipython_extension` registered."""
    from mmsp_nb import notebook

    notebook.unload_ipython_extension(ipython)


def allow_nested_asyncio() -> None:
    """Let ``asyncio.run(main())`` and ``loop.run_until_complete(...)`` work in a cell, for pasted scripts.

    Nothing in this package needs it: the magics and ``Conversation.ask`` work as they are, and a cell
    may simply ``await main()``. It changes asyncio for the whole process and cannot be taken back.
    Uses ``nest_asyncio2`` if that is installed, else ``nest_asyncio``.

    Raises:
        RuntimeError: the running event loop cannot be patched (uvloop).
    """
    try:
        patch = _import_module("nest_asyncio2")
    except ImportError:
        patch = _import_module("nest_asyncio")
    try:
        patch.apply()
    except ValueError as error:
        raise RuntimeError(f"this event loop cannot be nested ({error}). Write `await main()` instead") from None
