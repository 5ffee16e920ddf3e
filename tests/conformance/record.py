"""Recorded results of the reference: compact JSON files, one a client type.

A file holds ``{"cases": {id: [digest, result]}, "shared": [...]}``. A part of a result that occurs often is kept once
in ``shared`` and stands as ``{"$": n}``, so that three thousand results stay below a megabyte.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")
Results = dict[str, tuple[str, dict[str, Any]]]
"""Case id -> the case's digest when it was recorded, and the result."""

WORTH_SHARING = 24


def save(results: Results, directory: Path = DATA) -> int:
    """Write all results; files of client types that are gone are removed. Returns the bytes written."""
    directory.mkdir(exist_ok=True)
    by_type: dict[str, Results] = {}
    for name in sorted(results):
        by_type.setdefault(name.partition("/")[0], {})[name] = results[name]
    for path in directory.glob("*.json"):
        if path.stem not in by_type:
            path.unlink()
    written = 0
    for client_type, part in by_type.items():
        text = pack(part)
        (directory / f"{client_type}.json").write_text(text, encoding="utf-8")
        written += len(text.encode())
    return written


def load(directory: Path = DATA) -> Results:
    """All recorded results."""
    found: Results = {}
    for path in sorted(directory.glob("*.json")):
        found |= unpack(path.read_text(encoding="utf-8"))
    return found


def pack(results: Results) -> str:
    """The text of one file: one case a line, so that a change is a small diff."""
    counts: Counter[str] = Counter()
    for _, result in results.values():
        _count(result, counts)
    shared: list[Any] = []
    numbers: dict[str, int] = {}
    packed = {name: [digest, _pack(result, counts, shared, numbers)] for name, (digest, result) in results.items()}
    lines = [f"{_text(name)}:{_text(value)}" for name, value in packed.items()]
    return '{"shared":[\n' + ",\n".join(map(_text, shared)) + '\n],"cases":{\n' + ",\n".join(lines) + "\n}}\n"


def unpack(text: str) -> Results:
    whole = json.loads(text)
    return {name: (digest, _unpack(value, whole["shared"])) for name, (digest, value) in whole["cases"].items()}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _count(value: Any, counts: Counter[str]) -> None:
    if not isinstance(value, (dict, list)):
        return
    text = _text(value)
    counts[text] += 1
    if counts[text] == 1:  # what lies inside a repeated value is not worth sharing once more
        for inner in value.values() if isinstance(value, dict) else value:
            _count(inner, counts)


def _pack(value: Any, counts: Counter[str], shared: list[Any], numbers: dict[str, int]) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    text = _text(value)
    if text in numbers:
        return {"$": numbers[text]}
    if isinstance(value, dict):
        packed: Any = {key: _pack(inner, counts, shared, numbers) for key, inner in value.items()}
    else:
        packed = [_pack(inner, counts, shared, numbers) for inner in value]
    if counts[text] < 2 or len(text) < WORTH_SHARING:
        return packed
    shared.append(packed)
    numbers[text] = len(shared) - 1
    return {"$": numbers[text]}


def _unpack(value: Any, shared: list[Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(inner, shared) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$"}:
        return _unpack(shared[value["$"]], shared)
    return {key: _unpack(inner, shared) for key, inner in value.items()}
