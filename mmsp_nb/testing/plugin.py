"""pytest fixtures. Load them with ``pytest_plugins = ["mmsp_nb.testing.plugin"]`` in the top ``conftest.py``.

=====================  =====================================================================================
``fake_provider``      a running `FakeProvider` with an empty script
``no_provider_keys``   the environment without any provider's key, endpoint or client type
=====================  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mmsp_nb.testing.provider import FakeProvider

VENDORS = ("OPENAI", "ANTHROPIC", "GEMINI", "ZAI", "MOONSHOT", "DEEPSEEK", "MINIMAX", "VLLM", "MMSP")
VARIABLES = [
    *(f"{vendor}_{what}" for vendor in VENDORS for what in ("API_KEY", "BASE_URL")),
    "CLIENT_TYPE",
    "GOOGLE_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
]
"""Environment variables that decide where requests go and with which key."""


@pytest.fixture
def fake_provider() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


@pytest.fixture
def no_provider_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
