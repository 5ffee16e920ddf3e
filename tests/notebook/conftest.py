"""Kernels with our extension loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernels import SETUP, Kernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel in which somebody watches, with the extension loaded and ``talk(*scripts)`` defined."""
    kernel = Kernel({"MMSP_NB_LIVE": "1", "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))})
    try:
        cell = kernel.run(SETUP)
        assert cell.status == "ok", cell.traceback
        yield kernel
    finally:
        kernel.close()


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """The same with nobody watching."""
    kernel = Kernel({"MMSP_NB_LIVE": "0", "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))})
    try:
        assert kernel.run(SETUP).status == "ok"
        yield kernel
    finally:
        kernel.close()
