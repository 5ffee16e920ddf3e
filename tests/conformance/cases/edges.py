"""Out-of-range input: what the protocol leaves undefined, and so must be a clear error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..rig import Case
from .common import KINDS, ask

BAD: dict[str, dict[str, Any]] = {
    "thinking-level-unknown": {"thinking_level": "enormous"},
    "tool-choice-unknown": {"tool_choice": "maybe", "tools": [{"name": "f", "description": "d"}]},
    "tool-choice-empty-list": {"tool_choice": [], "tools": [{"name": "f", "description": "d"}]},
    "prompt-caching-unknown": {"prompt_caching": "sometimes"},
    "unknown-key": {"max_tokns": 3},
}


def cases() -> Iterator[Case]:
    for kind in KINDS.values():
        if kind.name == "mmsp":
            continue
        for row, config in BAD.items():
            yield ask(kind, f"undefined/{row}", config=config)
