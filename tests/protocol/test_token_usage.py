"""Token arithmetic."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from mmsp_nb.protocol.usage import Totals, add, cost, merge, totals

KEYS = ("cached_tokens", "prompt_tokens", "thoughts_tokens", "response_tokens")


def usage(*counts: int | None) -> Any:
    return dict(zip(KEYS, counts, strict=True))


PRICES = {"currency": "USD", "prompt_tokens": 2.5, "cached_tokens": "0.1", "thoughts_tokens": 10, "response_tokens": 10}


def test_a_first_piece_fills_up_with_none() -> None:
    assert merge(None, {"type": "usage", "prompt_tokens": 3}) == usage(None, 3, None, None)
    assert merge(None, {}) == usage(None, None, None, None)


def test_a_later_piece_replaces_only_what_it_reports() -> None:
    before = usage(1, 2, None, 4)
    assert merge(before, {"prompt_tokens": 0, "response_tokens": None, "thoughts_tokens": 9}) == usage(1, 0, 9, 4)
    assert before == usage(1, 2, None, 4)


def test_sums_keep_unknown_apart_from_zero() -> None:
    assert add(usage(1, None, None, 0), usage(2, 3, None, None)) == usage(3, 3, None, 0)
    assert add(None, None) == usage(None, None, None, None)
    assert add(usage(1, 2, 3, 4), None) == usage(1, 2, 3, 4)


def test_totals_are_input_output_and_all() -> None:
    assert totals(usage(40, 12, 6, 9)) == Totals(input=52, output=15, total=67)
    assert totals(usage(None, 12, None, None)) == (12, None, 12)
    assert totals(usage(0, None, None, 0)) == (0, 0, 0)
    assert totals(None) == totals({}) == (None, None, None)


def test_a_cost_is_exact() -> None:
    assert cost(usage(1_000_000, 1_000_000, 0, 0), PRICES) == Decimal("2.6")
    assert cost(usage(1, 1, 1, 1), PRICES) == Decimal("0.0000226")
    assert cost(usage(3, 0, 0, 0), PRICES) == Decimal("0.0000003")


def test_what_was_not_reported_costs_nothing_if_anything_was() -> None:
    assert cost(usage(None, 2, None, None), PRICES) == Decimal("0.000005")
    assert cost(usage(0, 0, None, 0), PRICES) == 0


@pytest.mark.parametrize(
    ("used", "prices"),
    [
        (None, PRICES),
        (usage(None, None, None, None), PRICES),
        (usage(1, 1, 1, 1), None),
        (usage(1, 1, 1, 1), {}),
        (usage(1, 1, 0, 0), {"prompt_tokens": 1, "response_tokens": 1}),
        (usage(1, 1, 0, 0), {**PRICES, "cached_tokens": None}),
    ],
)
def test_a_cost_that_cannot_be_known_is_none(used: Any, prices: Any) -> None:
    assert cost(used, prices) is None


def test_a_price_is_only_needed_for_tokens_that_were_used() -> None:
    assert cost(usage(0, 1, None, 1), {"prompt_tokens": 1, "response_tokens": 2}) == Decimal("0.000003")
