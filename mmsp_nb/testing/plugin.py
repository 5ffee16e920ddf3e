"""The pytest plugin. It is there wherever mmsp_nb is installed.

* Requests of this package that would leave the machine are refused in tests, notebooks under ``--nbval`` included;
  loopback is allowed. ``--mmsp-allow-requests``, the ini option ``mmsp_allow_requests`` or the marker of that name let
  them through.
* ``@pytest.mark.mmsp_cassette("tides.jsonl")`` answers all clients of a test from a recording; without a name it is
  ``cassettes/<module>/<test>.jsonl`` beside the test. ``--mmsp-record once`` (``new``, ``all``) records instead.
* Fixtures: ``fake_provider`` (a running `FakeProvider` with an empty script), ``no_provider_keys`` (an environment
  without any provider's key, endpoint or client type), ``mmsp_cassette`` (the test's `Cassette`, or None).
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mmsp_nb.testing.provider import FakeProvider
    from mmsp_nb.transport.cassette import Cassette

# What it needs is imported when a test uses it: this module is loaded by every run of pytest.

VENDORS = ("OPENAI", "ANTHROPIC", "GEMINI", "ZAI", "MOONSHOT", "DEEPSEEK", "MINIMAX", "VLLM", "MMSP")
VARIABLES = [
    *(f"{vendor}_{what}" for vendor in VENDORS for what in ("API_KEY", "BASE_URL")),
    "CLIENT_TYPE",
    "GOOGLE_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
]
"""Environment variables that decide where requests go and with which key."""

REQUESTS = "MMSP_REQUESTS"
MODES = ("none", "once", "new", "all")
_MARKERS = (
    "mmsp_cassette(path=None, mode=None, speed=None, strict=False): answer all clients of the test from a recording; "
    "strict fails when a recorded answer was not asked for",
    "mmsp_allow_requests: requests of mmsp_nb may leave the machine",
)
_before = pytest.StashKey[str | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mmsp_nb")
    group.addoption(
        "--mmsp-record", choices=MODES, default="none", help="what tests with a cassette record (default: none)"
    )
    group.addoption("--mmsp-allow-requests", action="store_true", help="let requests of mmsp_nb leave the machine")
    parser.addini("mmsp_allow_requests", "let requests of mmsp_nb leave the machine", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    config.stash[_before] = os.environ.get(REQUESTS)
    if not (config.getoption("--mmsp-allow-requests") or config.getini("mmsp_allow_requests")):
        os.environ[REQUESTS] = "loopback"  # kernels inherit it


def pytest_unconfigure(config: pytest.Config) -> None:
    before = config.stash.get(_before, None)
    if before is None:
        os.environ.pop(REQUESTS, None)
    else:
        os.environ[REQUESTS] = before


@pytest.fixture
def fake_provider() -> Iterator[FakeProvider]:
    """A running `FakeProvider` with an empty script."""
    from mmsp_nb.testing.provider import FakeProvider

    with FakeProvider() as provider:
        yield provider


@pytest.fixture
def no_provider_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment without any provider's key, endpoint or client type."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mmsp_cassette(request: pytest.FixtureRequest) -> Cassette | None:
    """The `Cassette` of the test's marker ``mmsp_cassette``; None without one."""
    marker = request.node.get_closest_marker("mmsp_cassette")
    if marker is None:
        return None
    from mmsp_nb.transport.cassette import Cassette

    path, mode, speed = _read_marker(*marker.args, **marker.kwargs)
    mode = mode or request.config.getoption("--mmsp-record")
    try:
        return Cassette(_place(request.node, path), mode, speed=speed)
    except FileNotFoundError as error:
        where = str(error).partition(":")[0]
        pytest.fail(f"{where}: record it with pytest --mmsp-record once", pytrace=False)


@pytest.fixture(autouse=True)
def _mmsp_requests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test's cassette in use, and requests let through where a marker or a recording wants them."""
    marker = request.node.get_closest_marker("mmsp_cassette")
    if request.node.get_closest_marker("mmsp_allow_requests"):
        monkeypatch.delenv(REQUESTS, raising=False)
    if marker is None:
        yield
        return
    cassette: Cassette = request.getfixturevalue("mmsp_cassette")
    if cassette.records:
        monkeypatch.delenv(REQUESTS, raising=False)
    with cassette.everywhere():
        yield
    if cassette.unused:
        what = f"{cassette.path}: not asked for: {'; '.join(cassette.unused)}"
        if marker.kwargs.get("strict"):
            pytest.fail(what, pytrace=False)
        warnings.warn(what)


def _read_marker(
    path: str | None = None, mode: str | None = None, speed: float | None = None, strict: bool = False
) -> tuple[str | None, str | None, float | None]:
    return path, mode, speed


def _place(node: Any, path: str | None) -> Path:
    folder = Path(node.path).parent
    if path is not None:
        return folder / path
    return folder / "cassettes" / Path(node.path).stem / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', node.name)}.jsonl"
