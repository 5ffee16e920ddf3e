"""Pictures as Python has them -> the URLs that messages carry.

A picture may be a URL, a path, bytes, a file opened in binary mode, a PIL image, a matplotlib figure or
axes, a uint8 array, or any object that draws itself for Jupyter (``_repr_png_``, ``_repr_jpeg_``). Results
are ``data:`` URLs of bounded size, because they are sent again with every later request of a conversation.

PIL and matplotlib are never imported to look at a value: an object of theirs exists only when they are
loaded. PIL is imported to make a picture smaller, when it is there.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmsp_nb.protocol.errors import InvalidMessageError

__all__ = ["MAX_BYTES", "MAX_SIDE", "Picture", "draw", "image_url", "picture", "sniff"]

MAX_SIDE = 1568
"""Longest side in pixels of a picture made here; providers scale down to about this anyway."""

MAX_BYTES = 1_500_000
"""Largest picture in bytes, before base64."""

MAX_FILE = 100_000_000
"""Largest file or byte string that is looked at."""

_DATA_URL = re.compile(r"data:([\w.+/-]+)(?:;[\w.=+-]+)*;base64,", re.IGNORECASE)


@dataclass(frozen=True)
class Picture:
    """An encoded picture: ``mime_type`` and ``data``, and ``size`` in pixels where it is known."""

    mime_type: str
    data: bytes
    size: tuple[int, int] | None = None

    @property
    def url(self) -> str:
        return f"data:{self.mime_type};base64,{base64.b64encode(self.data).decode('ascii')}"

    def __str__(self) -> str:
        kind = self.mime_type.partition("/")[2].upper()
        return f"{kind} image, {self.size[0]}x{self.size[1]} pixels" if self.size else f"{kind} image"


def image_url(value: Any) -> str:
    """The URL to send for ``value``: http(s) URLs as they are, everything else as a bounded ``data:`` URL.

    Raises InvalidMessageError when ``value`` is no picture, cannot be read, or is too large.
    """
    if isinstance(value, str):
        if re.match(r"https?://", value, re.IGNORECASE):
            return value
        if value[:5].lower() == "data:":
            return _checked_data_url(value)
    return picture(value).url


def picture(value: Any) -> Picture:
    """``value`` as a `Picture`; see `image_url` for what it may be, but no URL here."""
    if isinstance(value, Picture):
        return value
    if isinstance(value, str | os.PathLike):
        return _bounded(_read(Path(value).expanduser()), str(value))
    if isinstance(value, io.IOBase):
        value = _contents(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bounded(bytes(value), "these bytes")
    if _is_uint8_array(value):
        return _from_array(value)
    drawn = draw(value)
    if drawn is None:
        raise _error(
            f"{type(value).__name__} is no image: give a URL, a path, bytes, a PIL image or a matplotlib figure"
        )
    return drawn


def draw(value: Any) -> Picture | None:
    """An object that is a picture (a PIL image, a figure, axes, a Jupyter image), drawn; None for all else.

    What the drawing library raises passes through.
    """
    if _is_pil(value):
        return _encode_pil(value)
    figure = _figure(value)
    if figure is not None:
        return _encode_figure(figure)
    data = _own_drawing(value)
    return None if data is None else _bounded(data, f"this {type(value).__name__}")


def sniff(data: bytes) -> str | None:
    """The MIME type of an image that models take, by its first bytes: PNG, JPEG, GIF, WebP; else None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _error(message: str) -> InvalidMessageError:
    return InvalidMessageError(message, item_type="image_url")


def _checked_data_url(url: str) -> str:
    match = _DATA_URL.match(url)
    if match is None:
        raise _error("the image's data URL is not of the form data:<mime type>;base64,<data>")
    if len(url) <= MAX_BYTES * 4 // 3 + 200:
        return url
    try:
        data = base64.b64decode(url[match.end() :])
    except binascii.Error:
        raise _error("the image's data URL holds no valid base64") from None
    return _bounded(data, "the image's data URL").url


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE:
            raise _error(f"image file {path} is larger than {MAX_FILE // 1_000_000} MB")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidMessageError):
            raise
        reason = getattr(error, "strerror", None) or "not a path or URL"
        raise _error(f"cannot read image {str(path)[:200]!r}: {reason}") from None


def _contents(file: Any) -> bytes:
    """What an open file holds, from where it stands."""
    try:
        data = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:  # also of a closed file, and of a picture opened as text
        raise _error(f"cannot read this file: {str(error)[:200]}") from None
    if not isinstance(data, bytes):
        raise _error("a file with an image must be opened in binary mode: open(path, 'rb')")
    return data


def _bounded(data: bytes, name: str) -> Picture:
    """Encoded image bytes, as they are if they are small enough, else made smaller."""
    mime_type = sniff(data)
    if mime_type is not None and len(data) <= MAX_BYTES:
        return Picture(mime_type, data)
    if len(data) > MAX_FILE:
        raise _error(f"{name}: an image larger than {MAX_FILE // 1_000_000} MB")
    try:
        from PIL import Image
    except ImportError:
        if mime_type is None:
            raise _error(f"{name}: no PNG, JPEG, GIF or WebP image") from None
        raise _error(
            f"{name}: an image of {len(data) / 1e6:.1f} MB; the limit is {MAX_BYTES / 1e6:.1f} MB "
            "(with pillow installed it would be made smaller)"
        ) from None
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return _encode_pil(image)
    except InvalidMessageError:
        raise
    except Exception:
        raise _error(f"{name}: no image that can be read") from None


def _from_array(array: Any) -> Picture:
    try:
        from PIL import Image

        return _encode_pil(Image.fromarray(array))
    except ImportError:
        raise _error("making an image of an array needs pillow") from None
    except (TypeError, ValueError):
        raise _error(f"an array of shape {array.shape} is no image") from None


def _is_pil(value: Any) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def _figure(value: Any) -> Any:
    """The matplotlib figure that ``value`` is or belongs to, or None."""
    if "matplotlib.figure" not in sys.modules:
        return None
    figures, axes = sys.modules["matplotlib.figure"], sys.modules.get("matplotlib.axes")
    if axes is not None and isinstance(value, axes.Axes):
        value = value.figure
    if isinstance(value, figures.SubFigure):
        value = value.figure
    return value if isinstance(value, figures.Figure) else None


def _own_drawing(value: Any) -> bytes | None:
    for name in ("_repr_png_", "_repr_jpeg_"):
        method = getattr(type(value), name, None)
        if method is None:
            continue
        try:
            data = method(value)
        except Exception:  # a broken repr is no picture
            continue
        data = data[0] if isinstance(data, tuple) and data else data
        if isinstance(data, str):
            try:
                data = base64.b64decode(data)
            except (binascii.Error, ValueError):
                continue
        if isinstance(data, bytes) and sniff(data):
            return data
    return None


def _is_uint8_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return (
        numpy is not None
        and isinstance(value, numpy.ndarray)
        and value.dtype == numpy.uint8
        and value.ndim in (2, 3)
        and (value.ndim == 2 or value.shape[2] in (3, 4))
    )


def _encode_figure(figure: Any) -> Picture:
    width, height = (float(side) for side in figure.get_size_inches())
    dpi = min(float(figure.dpi), MAX_SIDE / max(width, height, 0.01))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    data = buffer.getvalue()
    if len(data) > MAX_BYTES:
        return _bounded(data, "this figure")
    return Picture("image/png", data, (round(width * dpi), round(height * dpi)))


def _encode_pil(image: Any) -> Picture:
    """PNG where it fits, else JPEG, else smaller JPEGs."""
    if not all(image.size):
        raise _error(f"an image of {image.size[0]}x{image.size[1]} pixels is empty")
    side = MAX_SIDE
    while side >= 64:
        small = image.copy()
        if small.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            small = small.convert("RGB")
        small.thumbnail((side, side))
        for mime_type, options in (("image/png", {"optimize": False}), ("image/jpeg", {"quality": 85})):
            buffer = io.BytesIO()
            flat = small if mime_type == "image/png" or small.mode in ("L", "RGB") else small.convert("RGB")
            flat.save(buffer, format=mime_type.partition("/")[2].upper(), **options)
            if buffer.tell() <= MAX_BYTES:
                return Picture(mime_type, buffer.getvalue(), small.size)
        side //= 2
    raise _error("the image cannot be made small enough")
