"""The few things the demo model knows by heart. They are in ``knowledge.toml``, which is read once."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


@functools.cache
def _load() -> Mapping[str, Mapping[str, Any]]:
    with Path(__file__).with_name("knowledge.toml").open("rb") as file:
        return tomllib.load(file)


def table(name: str) -> Mapping[str, Any]:
    """One table of the file: ``capitals``, ``lists``, ``about``, ``haikus``, ``code``, ``formulas``, ..."""
    return _load()[name]


def first(name: str, text: str) -> Any:
    """The first entry of a table whose key occurs in ``text``; the key "" always does, and comes last."""
    entries = table(name)
    return next(value for key, value in entries.items() if key in text)
