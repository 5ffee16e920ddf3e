"""What a conversation is: items, messages, events, errors, and the pure rules about them.

No I/O, no provider. Names are loaded when they are first used; importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmsp_nb.protocol.abort import AbortSignal
    from mmsp_nb.protocol.assembly import Assembler, EventStream, concat_uni_events_to_uni_message
    from mmsp_nb.protocol.configs import check_config, check_trace_id
    from mmsp_nb.protocol.copying import copy_item, copy_message, copy_messages
    from mmsp_nb.protocol.history import normalize_legacy_messages, now_ms, stamp
    from mmsp_nb.protocol.items import (
        EventType,
        FinishReason,
        PromptCaching,
        Role,
        ThinkingLevel,
        UniConfig,
        UniEvent,
        UniMessage,
        UsageMetadata,
    )
    from mmsp_nb.protocol.repairs import RepairReport, Traits, repair
    from mmsp_nb.protocol.validation import check_messages

__all__ = [
    "AbortSignal",
    "Assembler",
    "EventStream",
    "EventType",
    "FinishReason",
    "PromptCaching",
    "RepairReport",
    "Role",
    "ThinkingLevel",
    "Traits",
    "UniConfig",
    "UniEvent",
    "UniMessage",
    "UsageMetadata",
    "check_config",
    "check_messages",
    "check_trace_id",
    "concat_uni_events_to_uni_message",
    "copy_item",
    "copy_message",
    "copy_messages",
    "normalize_legacy_messages",
    "now_ms",
    "repair",
    "stamp",
]

_HOME = {
    "abort": ("AbortSignal",),
    "assembly": ("Assembler", "EventStream", "concat_uni_events_to_uni_message"),
    "configs": ("check_config", "check_trace_id"),
    "copying": ("copy_item", "copy_message", "copy_messages"),
    "history": ("normalize_legacy_messages", "now_ms", "stamp"),
    "items": (
        "EventType",
        "FinishReason",
        "PromptCaching",
        "Role",
        "ThinkingLevel",
        "UniConfig",
        "UniEvent",
        "UniMessage",
        "UsageMetadata",
    ),
    "repairs": ("RepairReport", "Traits", "repair"),
    "validation": ("check_messages",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_MODULE]
