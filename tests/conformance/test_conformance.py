"""This package against the recorded results of the reference, and the machinery that compares them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mmsp_nb.testing import Gate, Reply
from mmsp_nb.testing.streams import PNG

from . import record
from .allowed import ALLOWED, Allowed
from .cases import all_cases
from .compare import Report, judge
from .driver import from_json, to_json
from .rig import MISSING, Case, Difference, Stage, differences
from .run import Ours

CASES = all_cases()
GROUPS = sorted({case.group for case in CASES})
REPORT = Report()

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # some cases have legacy names


@pytest.fixture(scope="module")
def recorded() -> record.Results:
    return record.load()


@pytest.fixture(scope="module")
def perform() -> Iterator[object]:
    with Ours() as ours, Stage(PNG) as stage:
        yield lambda case: stage.perform(case, ours.run)


@pytest.mark.parametrize("group", GROUPS)
def test_behaves_like_the_reference_or_better_for_a_listed_reason(group, recorded, perform):
    cases = [case for case in CASES if case.group == group]
    stale = [case.id for case in cases if recorded.get(case.id, ("", {}))[0] != case.digest]
    assert not stale, f"not recorded as they are now: {stale[:5]}; run make conformance-record"
    verdicts = [judge(case.id, recorded[case.id][1], perform(case)) for case in cases]
    for verdict in verdicts:
        REPORT.add(verdict)
    wrong = [f"{verdict.case}: {difference}" for verdict in verdicts for difference in verdict.differing]
    assert not wrong, "\n".join(wrong)


def test_every_listed_reason_is_still_needed():
    judged = REPORT.same + len(REPORT.better) + len(REPORT.differing)
    if judged < len(CASES):
        pytest.skip("only some of the groups were run")
    print(REPORT.summary)
    assert REPORT.unused() == []


def test_nothing_is_recorded_that_is_no_case(recorded):
    assert recorded.keys() - {case.id for case in CASES} == set()


def test_there_are_cases_for_every_client_type():
    from mmsp_nb.providers.vendors import VENDORS

    types = {case.id.partition("/")[0] for case in CASES}
    assert types == set(VENDORS)
    assert len(types) == 14
    assert len(CASES) > 3000


def test_the_recorded_results_stay_small():
    assert sum(path.stat().st_size for path in record.DATA.glob("*.json")) < 1_000_000


def test_packed_results_come_back_as_they_were():
    inner = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    results = {
        "a/b/c": ("d1", {"requests": [inner, inner], "n": None, "empty": [], "none": {}}),
        "a/b/d": ("d2", {"requests": [inner, {"deep": [inner, inner]}]}),
    }
    packed = record.pack(results)
    assert record.unpack(packed) == results
    assert packed.count('"Hi"') == 1


@pytest.mark.parametrize(
    ("reference", "ours", "found"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": 1}, {"a": 2}, [Difference("a", 1, 2)]),
        ({"a": 1}, {}, [Difference("a", 1, MISSING)]),
        ({}, {"a": 1}, [Difference("a", MISSING, 1)]),
        ({"a": [1, 2]}, {"a": [1]}, [Difference("a", [1, 2], [1])]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [Difference("a.0.b", 1, 2)]),
        ({"a": 1}, {"a": True}, [Difference("a", 1, True)]),
        ({"a": None}, {"a": 0}, [Difference("a", None, 0)]),
    ],
)
def test_differences_are_found_with_their_paths(reference, ours, found):
    assert differences(reference, ours) == found


def test_a_reason_covers_only_its_cases_paths_and_check():
    entry = Allowed("Q-01", "why", ("x/*",), ("a.*",), lambda d, *_: d.ours == 2)
    assert entry.covers("x/y", Difference("a.b", 1, 2), {}, {})
    assert not entry.covers("z/y", Difference("a.b", 1, 2), {}, {})
    assert not entry.covers("x/y", Difference("b", 1, 2), {}, {})
    assert not entry.covers("x/y", Difference("a.b", 1, 3), {}, {})


def test_every_reason_names_a_quirk_or_is_an_improvement():
    for entry in ALLOWED:
        assert entry.quirk == "better" or (entry.quirk[:2] == "Q-" and 1 <= int(entry.quirk[2:]) <= 33)
        assert entry.why


def test_bytes_survive_the_way_through_json():
    value = {"data": b"\x00\xff", "list": [b"a", {"b": "c"}]}
    assert from_json(to_json(value)) == value


def test_a_changed_answer_of_the_provider_changes_a_cases_digest():
    def digest(*replies: Reply) -> str:
        return Case("a/b/c", {}, [], list(replies)).digest

    plain = Reply.stream([b"abc"])
    variants = [
        *(plain, plain.cut(2), plain.cut(2, "fin"), plain.hold(Gate(), 1), plain.endless(b"x")),
        *(plain.with_status(201), plain.with_status(200, x="1"), Reply.no_answer()),
    ]
    assert len({digest(reply) for reply in variants}) == len(variants)
    assert digest(plain) == digest(Reply.stream([b"abc"]))
