"""What a trace says of a vendor: its name in OpenTelemetry's conventions, and who answered, read off a payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from mmsp_nb.providers.vendors import Vendor

__all__ = ["answered_by", "provider_name"]

_BY_TYPE = {
    "openai-official": "openai",
    "anthropic-official": "anthropic",
    "google-official": "gcp.gemini",
    "google-genai": "gcp.gemini",
    "deepseek-official": "deepseek",
    "moonshot-official": "moonshot_ai",
    "minimax-official": "minimax",
    "zai-official": "zai",
}
_BY_AUTH = {"aws": "aws.bedrock", "vertex": "gcp.vertex_ai"}
_BY_HOST = {
    "api.openai.com": "openai",
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "amazonaws.com": "aws.bedrock",
    "api.groq.com": "groq",
    "api.x.ai": "x_ai",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "openrouter.ai": "openrouter",
}
_WRAPPERS = ("response", "message", "interaction")


def provider_name(vendor: Vendor, base_url: str) -> str:
    """``gen_ai.provider.name``: a name of the conventions where there is one, else the client type."""
    if name := _BY_AUTH.get(vendor.auth) or _BY_TYPE.get(vendor.name):
        return name
    host = urlsplit(base_url).hostname or ""
    known = (name for end, name in _BY_HOST.items() if host == end or host.endswith(f".{end}"))
    return next(known, vendor.name)


def answered_by(payload: Any) -> tuple[str | None, str | None]:
    """The id of the answer and the model that gave it, where an event of any dialect says so."""
    if not isinstance(payload, Mapping):
        return None, None
    inner = next((payload[key] for key in _WRAPPERS if isinstance(payload.get(key), Mapping)), payload)
    model = inner.get("model") or inner.get("modelVersion")
    identity = inner.get("responseId") or (inner.get("id") if model else None)  # an id alone may be that of an item
    return _text(identity), _text(model)


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) and value else None
