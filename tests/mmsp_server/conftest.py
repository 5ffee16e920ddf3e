"""The reference's MMSP server, as a black box in a process of its own.

These tests need the environment that ``make beside`` makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mmsp_nb import AutoLLMClient
from mmsp_nb.local.demo import DemoServer
from mmsp_nb.testing import FakeProvider
from mmsp_nb.testing.plugin import no_provider_keys  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[1] / "switching"))
sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.register_assert_rewrite(*{"wire_rules", "switch_kinds"} - sys.modules.keys())

from conformance.reference import environments  # noqa: E402
from mmsp_server_process import DEMO, KEY, MmspServer  # noqa: E402
from switch_kinds import KINDS  # noqa: E402


@pytest.fixture(autouse=True)
def _no_keys(no_provider_keys: None) -> None:  # noqa: F811
    pass


@pytest.fixture(scope="module")
def upstream() -> Iterator[FakeProvider]:
    """Behind the models ``fake-<client type>``."""
    with FakeProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def server(upstream: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MmspServer]:
    if not environments.is_made("reference"):
        pytest.skip("make beside makes .venvs/reference")
    with DemoServer() as demo:
        rows: list[dict[str, Any]] = [
            {"server_model_id": name, "model_id": "demo", "client_type": kind, "base_url": demo.base_url + path}
            for name, (kind, path) in DEMO.items()
        ]
        rows += [
            {
                "server_model_id": f"fake-{kind.name}",
                "model_id": kind.model,
                "client_type": kind.name,
                "base_url": upstream.url(kind.path),
            }
            for kind in KINDS.values()
            if kind.name != "mmsp"
        ]
        with MmspServer(rows, tmp_path_factory.mktemp("server")) as running:
            yield running


@pytest.fixture
def provider(upstream: FakeProvider) -> FakeProvider:
    """The upstream with an empty script."""
    upstream.reset()
    return upstream


@pytest.fixture
def client(server: MmspServer) -> Any:
    """Makes a client of the server for one of its models."""

    def make(model: str = "demo", key: str = KEY, **options: Any) -> AutoLLMClient:
        return AutoLLMClient(model, key, server.base_url, "mmsp", **options)

    return make
