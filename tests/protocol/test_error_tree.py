"""The error tree: attributes, copies, pickles."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from mmsp_nb.protocol import errors
from mmsp_nb.protocol.errors import AbortError, MMSPError, preview

CLASSES = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, MMSPError)
]  # fmt: skip
COPIES: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(lambda error, n=n: pickle.loads(pickle.dumps(error, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)),
]


def test_every_error_of_the_tree_is_exported_and_a_value_error() -> None:
    assert {cls.__name__ for cls in CLASSES} | {"AbortError", "advised", "preview", "quoted", "visible"} == set(
        errors.__all__
    )
    assert all(issubclass(cls, ValueError) for cls in CLASSES)
    assert issubclass(errors.ProviderStreamError, RuntimeError)


@pytest.mark.parametrize("cls", CLASSES)
def test_attributes_have_defaults_and_nothing_else_is_taken(cls: type[MMSPError]) -> None:
    error = cls("what happened")
    assert str(error) == error.message == "what happened"
    assert {name: getattr(error, name) for name in cls.fields} == cls.fields
    with pytest.raises(TypeError, match="has no attribute 'nonsense'"):
        cls("x", nonsense=1)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("make", COPIES)
def test_errors_survive_copying_and_pickling(cls: type[MMSPError], make: Callable[[Any], Any]) -> None:
    error = cls("what happened", **{name: f"<{name}>" for name in cls.fields})
    error.add_note("a note")
    twin = make(error)
    assert type(twin) is cls
    assert str(twin) == "what happened"
    assert vars(twin) == vars(error)
    assert twin.args == error.args


@pytest.mark.parametrize("make", COPIES)
@pytest.mark.parametrize("reason", [None, "why", ("a", 1)])
def test_an_abort_survives_copying_and_pickling(reason: Any, make: Callable[[Any], Any]) -> None:
    twin = make(AbortError(reason))
    assert type(twin) is AbortError
    assert twin.reason == reason
    assert twin.args == (() if reason is None else (reason,))


def test_an_abort_is_a_cancellation_and_no_exception() -> None:
    assert issubclass(AbortError, asyncio.CancelledError)
    assert not issubclass(AbortError, Exception)


def test_a_preview_shows_both_ends_of_a_long_text() -> None:
    assert preview("x" * 160) == "x" * 160
    assert preview("a" * 72 + "b" * 17 + "c" * 72) == "a" * 72 + "...[truncated]..." + "c" * 72
