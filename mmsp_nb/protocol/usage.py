"""Token arithmetic: merging the pieces a provider reports, sums, totals, prices.

The four counts of a `UsageMetadata` are a partition, so everything here is plain addition. None means
"not reported" and is kept apart from 0 for as long as nothing else is known. So is a count that is no number of tokens:
a wrong one would spoil sums, budgets and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple, cast

from mmsp_nb.protocol.items import UsageMetadata

__all__ = ["Totals", "add", "cost", "count", "merge", "totals", "whole"]

_KEYS = tuple(UsageMetadata.__annotations__)
_MILLION = Decimal(1_000_000)


class Totals(NamedTuple):
    """Tokens in, out and together; None where not one of the counts behind it was reported."""

    input: int | None
    output: int | None
    total: int | None


def count(value: Any) -> int | None:
    """``value`` as a number of tokens, which some gateways write as ``12.0`` or ``"12"``; None for what is none."""
    if value.__class__ is int:
        return value if value >= 0 else None
    if isinstance(value, float) and value >= 0 and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20 else None


def whole(usage: Any) -> UsageMetadata | None:
    """The four counts of ``usage`` as numbers of tokens, as a new dict; None when it is no usage."""
    if not isinstance(usage, Mapping):
        return None
    return cast("UsageMetadata", {key: count(usage.get(key)) for key in _KEYS})


def merge(into: Mapping[str, Any] | None, piece: Mapping[str, Any]) -> UsageMetadata:
    """``into`` with a later piece of the same exchange laid over it, as a new dict.

    A count that the piece carries replaces the earlier one; nothing is summed. Other keys of
    ``piece`` are ignored.
    """
    before = into or {}
    latest = {key: before.get(key) if (new := count(piece.get(key))) is None else new for key in _KEYS}
    return cast("UsageMetadata", latest)


def add(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> UsageMetadata:
    """The usage of two exchanges together, count by count, as a new dict."""
    first: Mapping[str, Any] = whole(a) or {}
    second: Mapping[str, Any] = whole(b) or {}
    return cast("UsageMetadata", {key: _sum(first.get(key), second.get(key)) for key in _KEYS})


def totals(usage: Mapping[str, Any] | None) -> Totals:
    """Input (cached and prompt), output (thoughts and response) and their sum."""
    known: Mapping[str, Any] = whole(usage) or {}
    tokens_in = _sum(known.get("cached_tokens"), known.get("prompt_tokens"))
    tokens_out = _sum(known.get("thoughts_tokens"), known.get("response_tokens"))
    return Totals(tokens_in, tokens_out, _sum(tokens_in, tokens_out))


def cost(usage: Mapping[str, Any] | None, prices: Mapping[str, Any] | None) -> Decimal | None:
    """What ``usage`` costs, exactly, in the currency of ``prices``.

    Args:
        usage: the four counts; one that was not reported counts as 0.
        prices: per million tokens, by the same four keys; numbers or decimal strings. Other keys
            (``currency``) are ignored.

    Returns:
        None when it cannot be known: nothing was reported, or tokens were used that have no price.
    """
    if not usage or not prices:
        return None
    total = Decimal(0)
    reported = False
    for key in _KEYS:
        count = usage.get(key)
        if count is None:
            continue
        reported = True
        price = prices.get(key)
        if count and price is None:
            return None
        if count:
            total += count * Decimal(str(price))  # str: 0.1 is meant as one tenth, not as its float
    return total / _MILLION if reported else None


def _sum(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b
