"""Limits are read, and hold over every stretch of their length."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmsp_nb.mapping.rates import Limit, Rates, Width, parse_limits


@pytest.mark.parametrize(
    ("written", "limits"),
    [
        ("60/min", [(60, "requests", 60)]),
        ("2/s", [(2, "requests", 1)]),
        ("100k tokens/min", [(100_000, "tokens", 60)]),
        ("60/min, 100k tokens/min", [(60, "requests", 60), (100_000, "tokens", 60)]),
        ("60/min,100k tokens/min", [(60, "requests", 60), (100_000, "tokens", 60)]),
        ("60 requests per minute and 1.5M tokens / day", [(60, "requests", 60), (1_500_000, "tokens", 86400)]),
        ("1,000/hour", [(1000, "requests", 3600)]),
        ("1_000 req/10 min", [(1000, "requests", 600)]),
        ("60 rpm; 90k tpm", [(60, "requests", 60), (90_000, "tokens", 60)]),
        ("0.5/s", [(1, "requests", 2)]),
        ("1.5/min", [(1, "requests", 40)]),
        (["60/min", "10/s"], [(60, "requests", 60), (10, "requests", 1)]),
        (None, []),
    ],
)
def test_limits_are_written_as_people_write_them(written, limits):
    assert [(each.amount, each.unit, each.period) for each in parse_limits(written)] == limits


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("60/mim", "'mim' is no time; did you mean 'min'?"),
        ("60", "says no time; did you mean '60/min'?"),
        (60, "limit 60 says no time: did you mean '60/min'?"),
        ("100k tokns/min", "'tokns' is not what can be counted; did you mean 'tokens'?"),
        ("60 rpmm", "says no time; did you mean 'rpm'?"),
        ("fast", "cannot be read: write it like '60/min'"),
        ("", "cannot be read"),
        ("-5/min", "cannot be read"),
        ("0/min", "lets nothing through"),
        ("5/0 min", "lets nothing through"),
        (True, "limit is a text"),
        ({"rpm": 60}, "limit is a text"),
    ],
)
def test_what_is_no_limit_is_said_in_one_line_with_what_was_meant(written, words):
    with pytest.raises(ValueError) as caught:
        parse_limits(written)
    assert words in str(caught.value) and "\n" not in str(caught.value)


sizes = st.lists(st.tuples(st.integers(0, 400), st.floats(0, 5)), min_size=1, max_size=60)


@given(
    sizes,
    st.integers(1, 10),
    st.integers(50, 500),
    st.floats(0.5, 100),
)
def test_no_stretch_of_its_length_has_more_than_a_limit_allows_and_nobody_waits_for_ever(rows, amount, tokens, period):
    rates = Rates([Limit(amount, "requests", period), Limit(tokens, "tokens", period)])
    now, out = 0.0, []
    for size, pause in rows:
        now += pause
        waits = 0
        while (delay := rates.delay(now, size)) > 0:
            now = max(now + delay, math.nextafter(now, math.inf))
            waits += 1
            assert waits < 400
        rates.take(now, size)
        out.append((now, size))
    for begin, _ in out:
        inside = [size for at, size in out if begin <= at < begin + period * (1 - 1e-9)]
        assert len(inside) <= amount
        assert sum(min(size, tokens) for size in inside) <= tokens  # one larger than the limit goes out alone
    # and as early as may be: a window that is not full lets a row out at once
    assert Rates([Limit(amount, "requests", period)]).delay(0, 0) == 0


def test_what_a_request_has_really_taken_counts_from_then_on():
    rates = Rates([Limit(100, "tokens", 60)])
    use = rates.take(0, 90)
    assert rates.delay(1, 50) == 59
    rates.settle(use, 20)
    assert rates.delay(1, 50) == 0
    rates.settle(use, 100)
    assert rates.delay(1, 50) == 59
    assert rates.delay(60, 50) == 0
    rates.settle(use, 5)  # it has left the window
    rates.take(60, 100)
    assert rates.delay(61, 1) == 59


def test_a_pause_holds_for_all_and_is_never_shortened():
    rates = Rates()
    rates.hold(10)
    rates.hold(5)
    assert rates.delay(4) == 6
    assert rates.delay(10) == 0


def test_the_width_is_halved_by_a_refusal_and_comes_back_by_answers():
    width = Width(8)
    width.slower()
    assert width.now == 4
    for _ in range(4):
        width.slower()
    assert width.now == 1
    for _ in range(100):
        width.faster()
    assert width.now == 8
