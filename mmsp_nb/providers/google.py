"""What Google's two chat dialects and its embeddings share: binary fields, call names, speech."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.providers.images import base64_text, split_data_url
from mmsp_nb.providers.mapping import Draft, fidelity, output_schema

PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"
"""What Google accepts where a thought's signature is not known."""

_DEFAULT_VOICE = "Kore"


def model_path(draft: Draft, method: str) -> str:
    """The path of a method on a model; ids that already name a collection are not prefixed again."""
    prefix = draft.rule("model_path")
    if draft.model.startswith(("models/", "tunedModels/")):
        prefix = prefix.removesuffix("models/")
    return f"{prefix}{quote(draft.model, safe='/')}:{method}"


def media(draft: Draft, item: Item, url: str | None = None, *, url_safe: bool = False) -> tuple[str, str]:
    """``(MIME type, base64 data)`` of an image URL, an image item or an inline item."""
    url = url or item.get("image_url")
    mime_type, data = split_data_url(draft, url) if url else (item["mime_type"], item["data"])
    try:
        return mime_type, base64_text(data, url_safe=url_safe)
    except ValueError:
        raise draft.invalid({"type": "image_url.done"} if url else item, "its data is no base64") from None


def signature(item: Item, *, url_safe: bool = False) -> str | None:
    """The signature of an item as this wire wants it; what cannot be one (another vendor's) counts as none."""
    value = fidelity(item).get("signature")
    if not value or (isinstance(value, str) and not url_safe):
        return value or None
    try:
        return base64_text(value, url_safe=url_safe)
    except ValueError:
        return None


def identified(call_id: str, name: str, key: str) -> dict[str, str]:
    """The id field of a call or result; a call that came without an id has its name for one, and is sent without."""
    return {} if call_id == name else {key: call_id}


def json_format(draft: Draft, value: Mapping[str, Any]) -> dict[str, Any]:
    """``mime_type`` and, when there is one, ``schema`` of a ``response_format``."""
    schema = output_schema(draft, value)
    if schema is None:
        return {"mime_type": "text/plain" if value["type"] == "text" else "application/json"}
    return {"mime_type": "application/json", "schema": schema["schema"]}


# Speech ---------------------------------------------------------------------------------------------


def is_speech(model: str) -> bool:
    return "tts" in model.lower()


def voices(draft: Draft) -> list[dict[str, str]]:
    """One ``{"voice"}``, or two ``{"speaker", "voice"}``."""
    entries = draft.config.get("tts_config") or [{"voice": _DEFAULT_VOICE}]
    if len(entries) > 2:
        raise draft.reject("tts_config", f"one or two voices are possible, not {len(entries)}")
    if len(entries) == 1:
        return [{"voice": entries[0]["voice"]}]
    if not all(entry.get("speaker") for entry in entries):
        raise draft.reject("tts_config", "each of two voices needs a speaker")
    return [{"speaker": entry["speaker"], "voice": entry["voice"]} for entry in entries]


def script(draft: Draft, messages: Sequence[UniMessage], speakers: Sequence[str]) -> list[tuple[str | None, str]]:
    """What is to be spoken: ``(speaker, text)`` of the last message, the speaker None for a plain text.

    Models that take marked turns get a two-speaker script split: a line ``<speaker>: <text>`` begins a
    turn, other lines continue it.
    """
    items = messages[-1]["content_items"] if messages else []
    for item in items:
        if item.get("type") != "text.done":
            raise draft.unsupported(item, "only text can be spoken")
    texts: list[str] = [item["text"] for item in items]
    if len(speakers) < 2 or "gemini-3.8" not in draft.model.lower():
        spoken: list[tuple[str | None, str]] = [(None, text) for text in texts if text]
    else:
        spoken = _turns(draft, "\n".join(texts), speakers)
    if not spoken:
        raise draft.nothing_to_send(max(len(messages) - 1, 0))
    return spoken


def _turns(draft: Draft, text: str, speakers: Sequence[str]) -> list[tuple[str | None, str]]:
    turns: list[tuple[str | None, list[str]]] = []
    for line in text.split("\n"):
        label, colon, rest = line.partition(":")
        if colon and label.strip() in speakers:
            turns.append((label.strip(), [rest.strip()]))
        elif turns:
            turns[-1][1].append(line)
        elif line.strip():
            raise draft.invalid({"type": "text.done"}, f"a two-speaker script begins with '{speakers[0]}: ...'")
    return [(speaker, "\n".join(lines).strip()) for speaker, lines in turns]
