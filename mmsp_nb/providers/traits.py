"""What each client type demands of a history that another vendor's model wrote part of, and who is whose vendor.

Data for `mmsp_nb.protocol.repairs.repair`. What a vendor's own model wrote, and what was sent to it, is left alone.
"""

from __future__ import annotations

import string
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mmsp_nb.protocol.repairs import Traits

if TYPE_CHECKING:
    from mmsp_nb.providers.vendors import Vendor

__all__ = ["TRAITS", "origin", "traits_for"]

_WORDS = string.ascii_letters + string.digits + "_-"

_PLAIN = Traits(
    empty_text="none",
    refused=frozenset({"inline_data", "inline_thinking", "embedding"}),
    assistant_images=False,
    silent_messages=False,
    paired_calls=True,
    id_length=64,
    unique_ids=True,
)
# reasoning of others is refused there, be it in clear or encrypted
_OPENAI = replace(_PLAIN, thinking="signed", signatures=frozenset({"encrypted_content"}))
_CHAT = replace(_PLAIN, id_length=40)
_MESSAGES = replace(_PLAIN, thinking="signed", id_characters=_WORDS, user_first=True)
_GOOGLE = Traits(
    empty_text="signed",
    refused=frozenset({"embedding"}),
    silent_messages=False,
    paired_calls=True,
    user_first=True,
)
# which vendor is behind a server is not known, so each must be able to take it
_ANY = replace(_PLAIN, thinking="none", id_characters=_WORDS, id_length=40, named_ids=False, user_first=True)

TRAITS: dict[str, Traits] = {
    "openai-official": _OPENAI,
    "openai-responses": _OPENAI,
    "deepseek-official": _PLAIN,
    "minimax-official": _PLAIN,
    "openai-chat": _CHAT,
    "openai-chat-vllm-adapter": _CHAT,
    "zai-official": _CHAT,
    # a call whose reasoning is missing is refused there
    "moonshot-official": replace(_CHAT, thought_calls=True),
    "anthropic-official": _MESSAGES,
    "ant-messages": _MESSAGES,
    "google-official": _GOOGLE,
    "google-genai": _GOOGLE,
    "mmsp": _ANY,
}
"""Client type -> traits. Embeddings are made of what they are given: nothing is mended for them."""

_VENDORS = {
    "openai-official": "openai",
    "anthropic-official": "anthropic",
    "google-official": "google",
    "google-genai": "google",
    "deepseek-official": "deepseek",
    "minimax-official": "minimax",
    "zai-official": "zai",
    "moonshot-official": "moonshot",
}
"""Client types that lead to one vendor, at whatever address."""

_AT_HOME = {"openai-responses": "openai", "ant-messages": "anthropic"}
"""Client types that lead to this vendor at its own address, and elsewhere to anyone."""


def traits_for(vendor: Vendor, model: str) -> Traits:
    """What a history must be like to be sent to this model."""
    traits = Traits() if vendor.dialect == "embeddings" else TRAITS.get(vendor.name, Traits())
    return traits if vendor.reads_images(model) else replace(traits, refused=traits.refused | {"image_url"})


def origin(vendor: Vendor, model: str, base_url: str) -> str:
    """Who makes the opaque parts of this model's answers, and can read them: ``UniMessage.origin``.

    A vendor's name where the client type tells it. Behind a gateway or a server of one's own it may be
    anyone, so there the origin is as narrow as can be: ``<client type>@<host>/<model>``.
    """
    if vendor.auth == "vertex":
        return "vertex"  # other keys sign there
    if name := _VENDORS.get(vendor.name):
        return name
    host = urlsplit(base_url).hostname or ""
    if vendor.name in _AT_HOME and host == urlsplit(vendor.default_base_url).hostname:
        return _AT_HOME[vendor.name]
    return f"{vendor.name}@{host}/{model}"
