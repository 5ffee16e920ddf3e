"""Images on the way out: data URLs, binary payloads, and the size in an image's header."""

from __future__ import annotations

import base64
import binascii
import re
import struct

from mmsp_nb.protocol.errors import ResponseFormatError
from mmsp_nb.providers.mapping import Draft

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.+)", re.DOTALL | re.IGNORECASE)
_LONGEST_SIDE = 65_535
_MANY_PATCHES = 30_000


def split_data_url(draft: Draft, url: str) -> tuple[str, str]:
    """``(MIME type, base64 payload without white space)`` of a base64 data URL, else InvalidMessageError."""
    match = _DATA_URL.fullmatch(url)
    payload = "".join(match[2].split()) if match else ""
    if not match or not payload:
        raise draft.invalid({"type": "image_url.done"}, "expected data:<mime>;base64,<payload>, or an http(s) URL")
    return match[1], payload


def base64_text(data: bytes | str, *, url_safe: bool = False) -> str:
    """Bytes, or text in either base64 alphabet, as padded base64 text. ValueError when it is neither."""
    if isinstance(data, str):
        plain = "".join(data.split()).replace("-", "+").replace("_", "/")
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    return (base64.urlsafe_b64encode if url_safe else base64.b64encode)(data).decode("ascii")


def received_bytes(client: str, text: str | None) -> bytes:
    """The bytes of a base64 field of an answer, in either alphabet; ResponseFormatError when it is none."""
    try:
        return base64.b64decode(base64_text(text or ""))
    except (ValueError, TypeError):
        raise ResponseFormatError(f"{client} received binary data that is no base64", client=client) from None


def needs_high_detail(model: str, url: str) -> bool:
    """Whether GPT-5.6 would shrink this image: a base64 data URL of more than 30,000 patches of 32 x 32."""
    if "gpt-5.6" not in model.lower():
        return False
    head, _, payload = url.partition(",")
    if not head.lower().startswith("data:") or "base64" not in head.lower().split(";")[1:]:
        return False
    try:
        size = pixel_size(binascii.a2b_base64(payload))
    except (ValueError, struct.error):
        return False
    if size is None:
        return False
    scale = min(1.0, _LONGEST_SIDE / max(*size, 1))
    width, height = (int(side * scale + 0.5) for side in size)
    return -(-width // 32) * -(-height // 32) > _MANY_PATCHES


def pixel_size(data: bytes) -> tuple[int, int] | None:
    """``(width, height)`` from the header of a PNG, GIF, WebP or JPEG image, else None."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return struct.unpack_from(">II", data, 16)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return struct.unpack_from("<HH", data, 6)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    return _jpeg_size(data) if data[:2] == b"\xff\xd8" else None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        # a lone fill byte, or a segment with its length
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
