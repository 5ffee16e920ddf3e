"""When GPT-5.6 is asked to look at an image in high detail."""

from __future__ import annotations

import base64
import struct

import pytest
from provider_helpers import body, image, result, user

WEB = "https://example.com/tide.png?x=1"

# Image detail -------------------------------------------------------------------------------------------


def _data_url(data: bytes, head: str = "data:image/x;base64") -> str:
    return f"{head},{base64.b64encode(data).decode()}"


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height)


def jpeg(width: int, height: int) -> bytes:
    filler = b"\xff\xe1" + struct.pack(">H", 6) + b"Exif"
    return b"\xff\xd8" + filler + b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + b"\0" * 10


def webp(kind: bytes, width: int, height: int) -> bytes:
    head = b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0"
    if kind == b"VP8X":
        return head + b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    if kind == b"VP8L":
        return head + b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
    return head + b"\0" * 3 + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)


LARGE = {
    "png": png(5600, 5600),
    "gif": gif(5600, 5600),
    "jpeg": jpeg(5600, 5600),
    "vp8x": webp(b"VP8X", 5600, 5600),
    "vp8l": webp(b"VP8L", 5600, 5600),
    "vp8": webp(b"VP8 ", 5600, 5600),
}


def detail(url: str, model: str = "gpt-5.6-sol", client_type: str = "openai-chat") -> str | None:
    return body(client_type, model, [user(image(url))])["messages"][0]["content"][0]["image_url"].get("detail")


@pytest.mark.parametrize("kind", LARGE)
def test_large_images_ask_gpt_56_for_high_detail(kind: str) -> None:
    assert detail(_data_url(LARGE[kind])) == "high"
    assert detail(_data_url(LARGE[kind][:9])) is None
    assert detail(_data_url(LARGE[kind]), model="gpt-5.5") is None


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (5536, 5536, None),  # 173 * 173 = 29,929 patches
        (5537, 5537, "high"),  # 174 * 174 = 30,276
        (32, 960_000, None),  # scaled to 2 * 65,535: 1 * 2,048
        (65_535, 448, None),  # 2,048 * 14 = 28,672
        (65_535, 449, "high"),  # 2,048 * 15 = 30,720
        (131_070, 1_920, "high"),  # scaled to 65,535 * 960: 2,048 * 30
    ],
)
def test_patches_are_counted_after_scaling_the_longer_side_down(width: int, height: int, expected: str | None) -> None:
    assert detail(_data_url(png(width, height))) == expected


def test_detail_is_for_base64_data_urls_of_the_clients_that_know_it() -> None:
    url = _data_url(LARGE["png"], "DATA:image/png;charset=x;BASE64")
    assert detail(url) == "high"
    assert detail(url, client_type="openai-chat-vllm-adapter") == "high"
    assert detail(_data_url(LARGE["png"]), client_type="moonshot-official") is None
    assert detail(_data_url(LARGE["png"], "data:image/png")) is None
    for nonsense in ("data:image/png;base64,%%%", _data_url(b"RIFF....WEBPnone"), _data_url(b"no image")):
        assert detail(nonsense) is None
    found = body("openai-official", "gpt-5.6-sol", [user(image(url), image(WEB), result("r", "t1", url))])["input"]
    assert [part.get("detail") for part in found[0]["content"]] == ["high", None]
    assert found[1]["output"][1]["detail"] == "high"
