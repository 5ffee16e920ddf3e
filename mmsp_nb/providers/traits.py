"""What each client type demands of a history that another vendor's model wrote part of.

Data for `mmsp_nb.protocol.repairs.repair`. A history that a client recorded itself passes unchanged.
"""

from __future__ import annotations

import string
from dataclasses import replace

from mmsp_nb.protocol.repairs import Traits

__all__ = ["TRAITS"]

_RESPONSES = Traits(
    refused=frozenset({"inline_data", "inline_thinking", "embedding"}),
    silent_messages=False,
    paired_calls=True,
    id_length=64,
)
_CHAT = Traits(
    refused=frozenset({"inline_data", "inline_thinking", "embedding"}),
    assistant_images=False,
    silent_messages=False,
    paired_calls=True,
)
_MESSAGES = Traits(
    empty_text=False,
    refused=frozenset({"inline_data", "inline_thinking", "embedding"}),
    assistant_images=False,
    silent_messages=False,
    paired_calls=True,
    id_characters=string.ascii_letters + string.digits + "_-",
    unique_ids=True,
    user_first=True,
)
_GOOGLE = Traits(
    refused=frozenset({"embedding"}),
    silent_messages=False,
    paired_calls=True,
    user_first=True,
)

TRAITS: dict[str, Traits] = {
    "openai-official": _RESPONSES,
    "openai-responses": _RESPONSES,
    "deepseek-official": _RESPONSES,
    "minimax-official": _RESPONSES,
    "openai-chat": replace(_CHAT, id_length=40),
    "openai-chat-vllm-adapter": _CHAT,
    "zai-official": _CHAT,
    "moonshot-official": _CHAT,
    "anthropic-official": replace(_MESSAGES, thinking="signed"),
    "ant-messages": _MESSAGES,
    "google-official": _GOOGLE,
    "google-genai": _GOOGLE,
}
"""Client type -> traits. Where there is no row (embeddings, MMSP servers) nothing is demanded."""
