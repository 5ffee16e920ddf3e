from __future__ import annotations

from collections.abc import Iterator

import planted
import pytest

from mmsp_nb import AutoLLMClient
from mmsp_nb.testing import FakeProvider


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, planted.ENVIRONMENT)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


@pytest.fixture
def client(provider: FakeProvider) -> AutoLLMClient:
    """A client with a secret in every place that takes one."""
    return planted.make(provider, "openai-chat")
