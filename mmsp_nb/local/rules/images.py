"""What can be said about an image without seeing it: its format and its size."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from ..wire.neutral import Image


def size(data: bytes) -> tuple[str, int, int] | None:
    """Format, width and height of a PNG, GIF, JPEG or WebP image, read from its header."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return "PNG", int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data[:4] == b"GIF8" and len(data) >= 10:
        return "GIF", int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and data[12:16] == b"VP8X" and len(data) >= 30:
        return "WebP", int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if data[:2] == b"\xff\xd8":
        at = 2
        while at + 9 < len(data) and data[at] == 0xFF:
            if data[at + 1] in (0xC0, 0xC1, 0xC2):
                return (
                    "JPEG",
                    int.from_bytes(data[at + 7 : at + 9], "big"),
                    int.from_bytes(data[at + 5 : at + 7], "big"),
                )
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _phrase(image: Image) -> str:
    if not image.url.startswith("data:"):
        return "an image by its address, which I did not open"
    head, _, payload = image.url.partition(",")
    try:
        found = size(base64.b64decode(payload[:65536], validate=False))
    except (binascii.Error, ValueError):
        found = None
    if found:
        return f"a {found[0]} image of {found[1]}×{found[2]} pixels"
    return f"an image ({head[5:].split(';')[0] or 'unknown type'})"


def describe(images: Sequence[Image]) -> str:
    """An answer to a prompt with images."""
    phrases = [_phrase(image) for image in images]
    if len(phrases) == 1:
        return f"I received {phrases[0]}. I have no eyes, but a model that sees would have got it just the same."
    lines = "\n".join(f"{at}. {phrase}" for at, phrase in enumerate(phrases, 1))
    return f"I received {len(phrases)} images:\n\n{lines}\n\nI have no eyes, so that is all I can say about them."
