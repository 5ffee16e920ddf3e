from __future__ import annotations

import base64
import io

import pytest

from mmsp_nb.media import MAX_BYTES, image_url, picture, sniff
from mmsp_nb.protocol.errors import InvalidMessageError

Image = pytest.importorskip("PIL.Image")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
URL = "data:image/png;base64," + base64.b64encode(PIXEL).decode()


def test_urls_pass_unchanged():
    for url in ("https://example.org/a.png", "HTTP://example.org/a", URL):
        assert image_url(url) == url


def test_bytes_paths_and_path_strings_become_data_urls(tmp_path):
    path = tmp_path / "pixel.png"
    path.write_bytes(PIXEL)
    assert image_url(PIXEL) == image_url(bytearray(PIXEL)) == image_url(path) == image_url(str(path)) == URL


def test_pil_images_and_arrays_become_data_urls():
    numpy = pytest.importorskip("numpy")
    for value in (Image.new("RGBA", (3, 2)), numpy.zeros((2, 3, 3), dtype=numpy.uint8)):
        assert image_url(value).startswith("data:image/png;base64,")
        assert picture(value).size == (3, 2)


def test_formats_that_models_do_not_take_are_converted():
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2)).save(buffer, "BMP")
    assert picture(buffer.getvalue()).mime_type == "image/png"


def test_what_is_too_large_is_made_smaller():
    buffer = io.BytesIO()
    Image.effect_noise((2000, 2000), 100).save(buffer, "PNG")
    assert len(buffer.getvalue()) > MAX_BYTES
    url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    for value in (buffer.getvalue(), url):
        assert len(image_url(value)) <= MAX_BYTES * 4 // 3 + 100


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("missing.png", "'missing.png'"),
        ("data:image/png,xx", "data URL"),
        ("\0", "not a path or URL"),
        (b"nothing", "these bytes"),
        (3, "int is no image"),
    ],
)
def test_what_is_no_image_is_refused_by_name(value, part):
    with pytest.raises(InvalidMessageError, match=part) as caught:
        image_url(value)
    assert caught.value.item_type == "image_url" and "\n" not in str(caught.value)


def test_directories_are_refused(tmp_path):
    with pytest.raises(InvalidMessageError, match="cannot read image"):
        image_url(tmp_path)


def test_kinds_are_known_by_their_first_bytes():
    assert [sniff(data) for data in (PIXEL, b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF1234WEBP", b"<svg", b"")] == [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        None,
        None,
    ]


def test_open_files_are_read(tmp_path):
    path = tmp_path / "pixel.png"
    path.write_bytes(PIXEL)
    with path.open("rb") as file:
        assert image_url(file) == image_url(io.BytesIO(PIXEL)) == URL
    with pytest.raises(InvalidMessageError, match="cannot read this file: read of closed file"):
        image_url(file)
    path.write_text("text")
    with path.open() as file, pytest.raises(InvalidMessageError, match="binary mode"):
        image_url(file)


def test_an_image_without_pixels_is_refused():
    with pytest.raises(InvalidMessageError, match="0x0 pixels is empty"):
        image_url(Image.new("RGB", (0, 0)))
