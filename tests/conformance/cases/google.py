"""What only Google's clients do: images and speech out, tool schemas, thinking by model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mmsp_nb.testing.parts import audio, image

from ..rig import Case
from .common import GOOGLE, KINDS, ask, item, message, said
from .items import DATA_URL

TWO = [{"speaker": "Ann", "voice": "Kore"}, {"speaker": "Bob", "voice": "Puck"}]
NEW, OLD = "gemini-3.8-flash-tts", "gemini-2.5-flash-preview-tts"
EVE = {"speaker": "Eve", "voice": "Zed"}
SPEECH: dict[str, tuple[str, Any, list[dict[str, Any]]]] = {
    "one-voice": (NEW, [{"voice": "Puck"}], [said("Hello there")]),
    "default-voice": (NEW, None, [said("Hello")]),
    "empty-list": (NEW, [], [said("Hello")]),
    "only-the-last-message": (NEW, None, [said("First"), message("assistant", item("text", text="A")), said("Last")]),
    "two-voices-new": (NEW, TWO, [said("Ann: Hello\n and more\nBob:  Hi \n\nAnn: Bye")]),
    "two-voices-old": (OLD, TWO, [said("Ann: Hello\nBob: Hi")]),
    "two-voices-two-texts": (NEW, TWO, [said("Ann: Hello", "Bob: Hi")]),
    "text-before-the-first-label": (NEW, TWO, [said("Well\nAnn: Hello")]),
    "two-voices-without-speakers": (NEW, [{"voice": "Kore"}, {"voice": "Puck"}], [said("Ann: Hello")]),
    "three-voices": (NEW, [*TWO, EVE], [said("Ann: Hello")]),
    "image-in-the-script": (NEW, None, [message("user", item("image_url", image_url=DATA_URL))]),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "nested": {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}},
            "b": {"type": "string", "enum": ["x", "y"]},
        },
    },
    "any-of": {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
    "additional-properties": {"type": "object", "properties": {}, "additionalProperties": False},
    "default-and-format": {
        "type": "object",
        "properties": {"a": {"type": "integer", "default": 3, "minimum": 1, "format": "int32"}},
    },
    "property-called-type": {"type": "object", "properties": {"type": {"type": "string"}}},
    "ref": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}},
    "type-list": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
}
PAINTER = "gemini-3.8-flash-image"
IMAGES: dict[str, Any] = {
    "both": {"aspect_ratio": "16:9", "image_size": "2K"},
    "one": {"aspect_ratio": "1:1"},
    "none": {},
}


def cases() -> Iterator[Case]:
    for name in GOOGLE:
        kind = KINDS[name]
        for row, (model, voices, messages) in SPEECH.items():
            config = {"max_tokens": 50, "system_prompt": "ignored", "thinking_level": "high", "temperature": None}
            if voices is not None:
                config["tts_config"] = voices
            yield ask(kind, f"speech/{row}", messages, config, model=model, replies=[kind.reply(audio(b"abcd"))])
        for row, schema in SCHEMAS.items():
            tools = [{"name": "f", "description": "d", "parameters": schema}]
            yield ask(kind, f"schemas/{row}", config={"tools": tools})
        for row, image_config in IMAGES.items():
            answer = [kind.reply(image(b"png"))]
            yield ask(kind, f"images/{row}", config={"image_config": image_config}, model=PAINTER, replies=answer)
        for level in ("none", "low", "medium", "high", "max"):
            yield ask(kind, f"images/thinking-{level}", config={"thinking_level": level}, model=PAINTER)
