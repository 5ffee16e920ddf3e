from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import planted
import pytest
from IPython.core.interactiveshell import InteractiveShell

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


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    InteractiveShell.clear_instance()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.run_line_magic("load_ext", "mmsp_nb")
    yield shell
    shell.run_line_magic("unload_ext", "mmsp_nb")
    InteractiveShell.clear_instance()
