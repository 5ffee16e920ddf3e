from __future__ import annotations

from collections.abc import Iterator

import pytest
from echoes import Echo

from mmsp_nb import spending
from mmsp_nb.mapping.journal import memory


@pytest.fixture
def echo() -> Iterator[Echo]:
    found = Echo()
    with found.provider:
        yield found


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    memory.clear()
    yield
    memory.clear()
    spending.reset()
