"""A short pass of every fuzz target: its seeds, the same ones damaged in a fixed way, and all that was ever a fault.

`make fuzz` looks for new ones. A fault it finds becomes a file ``regressions/<target>-<what>``, kept small.
"""

import random
from pathlib import Path

import pytest
from fuzz_grammar import check
from fuzz_targets import TARGETS

REGRESSIONS = Path(__file__).parent / "regressions"
DAMAGES = 25


def damaged(data: bytes, chance: random.Random, words: list[bytes]) -> bytes:
    """``data`` with a few bytes changed, left out, there twice, or a word put in."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, other = sorted((chance.randint(0, len(changed)), chance.randint(0, len(changed))))
        what = chance.randint(0, 3)
        if what == 0 and at < len(changed):
            changed[at] = chance.randint(0, 255)
        elif what == 1:
            del changed[at : min(other, at + 40)]
        elif what == 2:
            changed[at:at] = changed[at : min(other, at + 40)]
        else:
            changed[at:at] = chance.choice(words)
    return bytes(changed)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_damaged_seeds(name):
    target, chance = TARGETS[name], random.Random(name)
    words = [word.encode() for word in target.words] or [b"\x00"]
    for seed in target.seeds():
        target.run(seed)
        for _ in range(DAMAGES if len(seed) < 2_000 else 3):
            target.run(damaged(seed, chance, words)[: target.longest])


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*")), ids=lambda path: path.name)
def test_what_was_a_fault_once(path):
    TARGETS[path.name.partition("-")[0]].run(path.read_bytes())


def delta(kind, **fields):
    item = {"type": kind, **fields}
    return {"event_type": "delta", "content_items": [item], "usage_metadata": None, "finish_reason": None}


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("S2", [delta("text.delta", text="a"), delta("thinking.delta", thinking="b")]),
        ("S3", [delta("text.done", text="a")]),
        ("S4", [delta("text.delta", text="a"), delta("text.done", text="b")]),
        ("S5", [delta("text.delta", text="a", fidelity={"x": 1}), delta("text.done", text="a")]),
        ("S6", [delta("text.delta", text="a", fidelity={"item_id": "1"})]),
    ],
)
def test_the_grammar_notices(rule, events):
    with pytest.raises(AssertionError, match=rule):
        check(events, None)
