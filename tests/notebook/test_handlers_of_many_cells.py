"""Handlers of interrupts are put back, or forgotten where nobody puts them back: a shell in a terminal."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator

import pytest

from mmsp_nb import interrupts


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("same", [0, 600])
def test_handlers_do_not_pile_up_over_many_cells(monkeypatch: pytest.MonkeyPatch, same: float) -> None:
    monkeypatch.setattr(interrupts, "SAME", same)
    for _ in range(2 * sys.getrecursionlimit()):
        with interrupts.listening() as heard:
            interrupts.once()
    with interrupts.blocking():
        pass
    assert not heard.any
    interrupts.once()
    with interrupts.listening() as heard, contextlib.nullcontext() if same else pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert heard.any
