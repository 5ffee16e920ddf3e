from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import io
import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from mmsp_nb.tools.views import MAX_TEXT, View, view


class Color(enum.Enum):
    RED = "red"


class Model(BaseModel):
    name: str
    when: datetime.date
    secret: SecretStr = SecretStr("hidden")


@dataclasses.dataclass
class Point:
    x: int
    y: float
    password: str = dataclasses.field(default="hidden", repr=False)


Pair = collections.namedtuple("Pair", "left right")


class Plain:
    pass


class Named:
    def __repr__(self):
        return "Named(1)"


class Broken:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is: é", "as it is: é"),
        ("", ""),
        (None, "(no result)"),
        (3, "3"),
        (True, "true"),
        (2.5, "2.5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ([1, None, "é", float("inf")], '[1,null,"é","Infinity"]'),
        ({"a": {1: (2, 3)}, ("k", 1): {4}}, """{"a":{"1":[2,3]},"('k', 1)":[4]}"""),
        (Color.RED, "red"),
        (Path("a/b"), "a/b"),
        (datetime.datetime(2026, 1, 2, 3, 4), "2026-01-02T03:04:00"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (range(3), "[0,1,2]"),
        (Point(1, 2.0), '{"x":1,"y":2.0}'),
        (Pair(1, "b"), '{"left":1,"right":"b"}'),
        (Model(name="n", when=datetime.date(2026, 1, 2)), '{"name":"n","when":"2026-01-02","secret":"**********"}'),
        (ValueError("bad"), "ValueError: bad"),
        (b"text\n", "text\n"),
        (b"\x00\x01\xff", "(3 bytes, beginning 00 01 ff)"),
        (Named(), "Named(1)"),
        (Plain(), "(a Plain)"),
        (Broken(), "(a Broken that cannot be shown: RuntimeError)"),
        ([Named()], '["Named(1)"]'),
        (Point, "(a type: Point)"),
        (len, "(a builtin_function_or_method: len)"),
        (10**5000, "(an integer of 16,610 bits)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values(value, text):
    assert view(value) == View(text)


def test_a_tool_may_decide_for_itself():
    assert view(View("mine", ("https://h/u",))) == View("mine", ("https://h/u",))


def test_generators_and_files_are_not_used_up(tmp_path):
    generator = (n for n in range(3))
    assert view(generator).text == "(a generator, not read)"
    assert view([generator]).text == '["(a generator, not read)"]'
    assert list(generator) == [0, 1, 2]
    path = tmp_path / "f"
    path.write_text("line")
    with path.open() as file:
        assert "not read" in view(file).text
        assert file.read() == "line"


def test_what_contains_itself_and_what_is_nested_deeply_ends():
    loop: list[object] = [1]
    loop.append(loop)
    assert view(loop).text == '[1,"(contains itself)"]'
    deep: object = "end"
    for _ in range(100):
        deep = [deep]
    assert "nested too deeply" in view(deep).text
    shared = [1]
    assert view([shared, shared]).text == "[[1],[1]]"


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000_000,
        list(range(1_000_000)),
        {str(i): i for i in range(200_000)},
        ["x" * 1_000_000] * 50,
        [[["y" * 500] * 500] * 500] * 500,
        b"z" * 1_000_000,
        View("x" * 1_000_000),
        range(10**12),
    ],
    ids=["str", "list", "dict", "strings", "nested", "bytes", "view", "range"],
)
def test_large_values_are_cut_and_say_so(value):
    text = view(value).text
    assert len(text) <= MAX_TEXT * 1.5
    assert "left out" in text


def test_a_cut_list_is_still_json_and_counts_what_is_missing():
    written = json.loads(view(list(range(100_000))).text)
    shown = written[:-1]
    assert shown == list(range(len(shown)))
    assert written[-1] == f"... {100_000 - len(shown):,} more of 100,000 items left out"


def test_a_cut_text_keeps_its_beginning_and_end():
    text = view("begin" + "x" * 50_000 + "end").text
    assert text.startswith("begin") and text.endswith("end")


def test_looking_at_values_imports_neither_pandas_nor_numpy_nor_matplotlib_nor_ipython():
    code = """
import sys
from mmsp_nb.tools import view
view([1, {"a": object()}, b"x", 1.5])
print([name for name in ("pandas", "numpy", "matplotlib", "PIL", "IPython", "httpx") if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.strip() == "[]"


def test_dataframes():
    pandas = pytest.importorskip("pandas")
    small = pandas.DataFrame({"port": ["Brest", "Le|Havre"], "height": [6.5, float("nan")]})
    kind = str(small.dtypes.iloc[0])
    assert view(small).text == (
        "DataFrame of 2 rows and 2 columns\n"
        f"|   | port ({kind}) | height (float64) |\n"
        "| --- | --- | --- |\n"
        "| 0 | Brest | 6.5 |\n"
        "| 1 | Le\\|Havre | nan |"
    )
    large = view(pandas.DataFrame({f"c{i}": range(1000) for i in range(50)})).text
    assert "DataFrame of 1,000 rows and 50 columns" in large
    assert "(the first 20 of 1,000 rows)" in large and "(the first 30 of 50 columns; the others: c30" in large
    assert "not read" not in view({"frame": small}).text and "Brest" in view({"frame": small}).text


def test_series_indexes_and_pandas_scalars():
    pandas = pytest.importorskip("pandas")
    text = view(pandas.Series(range(100), name="height")).text
    assert text.startswith("Series 'height' of 100 values\n|   | height (int64) |\n")
    assert text.endswith("(the first 20 of 100 values)")
    assert view(pandas.DataFrame({"a": [1]})).text.startswith("DataFrame of 1 row and 1 column\n")
    assert view(pandas.Series([1])).text.startswith("Series of 1 value\n")
    assert view(pandas.Index([1, 2])).text == "Index of 2 values, int64: 1, 2"
    assert view(pandas.Timestamp("2026-01-02")).text == "2026-01-02T00:00:00"
    assert view([pandas.NaT, pandas.NA]).text == '["NaT","NA"]'


def test_arrays_and_numpy_scalars():
    numpy = pytest.importorskip("numpy")
    assert view(numpy.arange(4).reshape(2, 2)).text == "ndarray of shape (2, 2), int64\n[[0, 1],\n [2, 3]]"
    large = view(numpy.zeros((1000, 1000))).text
    assert len(large) < 2000 and "only the corners" in large
    scalars = [numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.float64("nan"), numpy.longdouble(2)]
    assert view(scalars).text == '[3,0.5,true,"NaN","2.0"]'


def pixels(url: str) -> tuple[int, int]:
    image = pytest.importorskip("PIL.Image")
    head, _, payload = url.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    with image.open(io.BytesIO(base64.b64decode(payload))) as opened:
        return opened.size


def test_figures_axes_and_images_become_pictures_with_a_note():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib.figure import Figure

    image = pytest.importorskip("PIL.Image")
    figure = Figure(figsize=(4, 3), dpi=100)
    axes = figure.subplots()
    for value in (figure, axes):
        shown = view(value)
        assert shown.text == "(PNG image, 400x300 pixels, attached)"
        assert pixels(shown.images[0]) == (400, 300)
    shown = view({"plot": figure, "photo": image.new("CMYK", (30, 20))})
    assert shown.text.count("attached") == 2
    assert [pixels(url) for url in shown.images] == [(400, 300), (30, 20)]


def test_pictures_are_bounded_in_size_and_number():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    image = pytest.importorskip("PIL.Image")
    numpy = pytest.importorskip("numpy")
    assert max(pixels(view(Figure(figsize=(60, 40))).images[0])) == 1568
    noise = numpy.random.default_rng(0).integers(0, 255, (1600, 1600, 3), dtype=numpy.uint8)
    [url] = view(image.fromarray(noise)).images
    assert url.startswith("data:image/jpeg") and len(url) < 2_100_000
    many = view([image.new("L", (2, 2)) for _ in range(7)])
    assert len(many.images) == 4 and many.text.endswith("(and 3 more images, not shown)")


def test_image_bytes_and_objects_that_draw_themselves():
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.new("RGB", (5, 5)).save(buffer, "PNG")

    class Drawn:
        def _repr_png_(self):
            return buffer.getvalue(), {"width": 5}

    class Empty:
        def _repr_png_(self):
            return None

        def __repr__(self):
            return "Empty()"

    for value in (buffer.getvalue(), Drawn()):
        assert view(value).text == "(PNG image, attached)"
        assert pixels(view(value).images[0]) == (5, 5)
    assert view(Empty()) == View("Empty()")


def test_a_figure_that_cannot_be_drawn_is_text():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    class Failing(Figure):
        def savefig(self, *args, **kwargs):
            raise RuntimeError("no fonts")

    assert view(Failing()).images == ()


def test_a_view_keeps_only_images_that_can_be_sent() -> None:
    seen = view(View("a chart", ("data:image/png;base64,AAAA", "data:image/png;base64,A*", "plot.png")))
    assert seen.images == ("data:image/png;base64,AAAA",)
    assert seen.text.startswith("a chart\n(an image is left out: its URL holds no base64")
    assert seen.text.count("left out") == 2
