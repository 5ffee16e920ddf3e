"""The vocabulary of the protocol: items, messages, events, usage and config, as plain dicts.

Only types and enumerations live here. They are `TypedDict`s, so a value is an ordinary dict, cheap
to make and easy to print, store and compare. What users pass in is checked in `validation`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

# pydantic needs the TypedDict of typing_extensions before Python 3.12
from typing_extensions import NotRequired, TypedDict  # noqa: UP035

Fidelity = dict[str, Any]
"""Opaque wire data that a later replay needs: signatures, encrypted reasoning, phases."""

Item = dict[str, Any]
"""Any item, done or delta. The TypedDicts below say what each type holds."""

REDACTED_THINKING = "_REDACTED_THINKING"
"""The text of a thinking item that stands for reasoning which the provider encrypted."""


class Role(StrEnum):
    """Who a message is from. There is no system role: that is ``UniConfig.system_prompt``."""

    USER = "user"
    ASSISTANT = "assistant"


class EventType(StrEnum):
    """``delta``: one item, be it a fragment or done; ``stop``: the end, with usage and finish reason."""

    DELTA = "delta"
    STOP = "stop"


class FinishReason(StrEnum):
    """Why the model ended its turn, in the provider's view."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALL = "tool_call"
    UNKNOWN = "unknown"


class ThinkingLevel(StrEnum):
    """How much the model may reason; providers map a level they lack to the nearest one."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class PromptCaching(StrEnum):
    """How long the provider may keep the prompt: as usual, not at all, or longer."""

    ENABLE = "enable"
    DISABLE = "disable"
    ENHANCE = "enhance"


AspectRatio = Literal["1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9"]
ImageSize = Literal["1K", "2K"]


class TextDone(TypedDict):
    type: Literal["text.done"]
    text: str
    fidelity: NotRequired[Fidelity | None]


class ThinkingDone(TypedDict):
    type: Literal["thinking.done"]
    thinking: str
    fidelity: NotRequired[Fidelity | None]


class InlineDataDone(TypedDict):
    type: Literal["inline_data.done"]
    data: bytes
    mime_type: str
    fidelity: NotRequired[Fidelity | None]


class InlineThinkingDone(TypedDict):
    type: Literal["inline_thinking.done"]
    data: bytes
    mime_type: str
    fidelity: NotRequired[Fidelity | None]


class ToolCallDone(TypedDict):
    type: Literal["tool_call.done"]
    name: str
    arguments: dict[str, Any]
    tool_call_id: str
    fidelity: NotRequired[Fidelity | None]


class ToolResultDone(TypedDict):
    type: Literal["tool_result.done"]
    text: str
    tool_call_id: str
    images: NotRequired[list[str] | None]


class ImageURLDone(TypedDict):
    type: Literal["image_url.done"]
    image_url: str


class EmbeddingDone(TypedDict):
    type: Literal["embedding.done"]
    embedding: list[float]


class UsageMetadata(TypedDict):
    """A partition of the tokens of one exchange: nothing is counted twice, None means not reported."""

    cached_tokens: int | None
    prompt_tokens: int | None
    thoughts_tokens: int | None
    response_tokens: int | None


class UniMessage(TypedDict):
    """One message: a role and done items, in order. ``created_at`` is in Unix milliseconds.

    ``origin`` says who made the fidelity of its items, and so who can read it; see `AutoLLMClient.origin`.
    It is never sent.
    """

    role: Literal["user", "assistant"]
    content_items: list[Item]
    usage_metadata: NotRequired[UsageMetadata | None]
    finish_reason: NotRequired[str | None]
    created_at: NotRequired[int | None]
    origin: NotRequired[str]


class UniEvent(TypedDict):
    """One step of a stream. ``created_at`` is in Unix milliseconds."""

    role: Literal["assistant"]
    event_type: Literal["delta", "stop"]
    content_items: list[Item]
    usage_metadata: UsageMetadata | None
    finish_reason: str | None
    created_at: int


class ToolSchema(TypedDict):
    """A function the model may call; ``parameters`` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: NotRequired[dict[str, Any]]


class ImageConfig(TypedDict, total=False):
    aspect_ratio: AspectRatio
    image_size: ImageSize


class TTSVoice(TypedDict):
    voice: str
    speaker: NotRequired[str]


class EmbeddingConfig(TypedDict, total=False):
    dimensions: int


class UniConfig(TypedDict, total=False):
    """Options of one call. Every key is optional, and None counts as absent.

    The last seven keys are ours; the others are the protocol's.
    """

    max_tokens: int | None
    temperature: float | None
    tools: list[ToolSchema] | None
    tool_choice: str | list[str] | None
    thinking_level: ThinkingLevel | str | None
    thinking_summary: bool | None
    system_prompt: str | None
    prompt_caching: PromptCaching | str | None
    fast_mode: bool | None
    image_config: ImageConfig | None
    tts_config: list[TTSVoice] | None
    embedding_config: EmbeddingConfig | None
    trace_id: str | None
    top_p: float | None
    stop: str | list[str] | None
    seed: int | None
    parallel_tool_calls: bool | None
    response_format: dict[str, Any] | None
    extra_body: dict[str, Any] | None
    extra_headers: dict[str, str] | None


PAYLOAD_FIELD: dict[str, str] = {
    "text": "text",
    "thinking": "thinking",
    "inline_data": "data",
    "inline_thinking": "data",
    "tool_call": "arguments",
    "embedding": "embedding",
}
"""The field of each streamed kind that grows from delta to delta."""
