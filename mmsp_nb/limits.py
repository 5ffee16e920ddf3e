"""How far one answer may go: requests, tool calls, cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.items import UsageMetadata

__all__ = ["Cost", "Limits", "Spent", "checked_max_calls", "checked_max_cost", "checked_max_turns"]

Cost = Callable[[UsageMetadata | None], Decimal | None]
"""What tokens cost; None when it is not known."""


@dataclass
class Spent:
    """What an answer has taken so far."""

    calls: int = 0
    usage: UsageMetadata | None = None

    def add(self, usage: UsageMetadata | None) -> None:
        """One request more."""
        if usage is not None:
            self.usage = tokens.add(self.usage, usage)


class Limits:
    """The limits of one answer. ``calls`` and ``cost`` None: any number, any sum.

    A limit ends an answer before calls run, never in the middle of a response. The cost is looked at when a response
    asks for tools, so that the last request may go beyond it.

    Raises ValueError for what is no limit, and for a limit of cost where no prices are known.
    """

    def __init__(self, turns: int, calls: int | None, cost: float | Decimal | None, price: Cost | None) -> None:
        self.turns = checked_max_turns(turns)
        self.calls = checked_max_calls(calls)
        self.cost = checked_max_cost(cost)
        self._price = price
        if self.cost is not None and price is None:
            raise ValueError("max_cost cannot be kept: the prices of this model are not known")

    def reached(self, spent: Spent, calls: Sequence[Any]) -> str:
        """Which limit forbids to run ``calls`` now: "max_calls", "max_cost", or nothing."""
        if self.calls is not None and spent.calls + len(calls) > self.calls:
            return "max_calls"
        cost = self._price(spent.usage) if self.cost is not None and self._price is not None else None
        return "max_cost" if cost is not None and self.cost is not None and cost >= self.cost else ""


def checked_max_turns(value: Any) -> int:
    """``value`` if it is a limit of requests; else ValueError."""
    return _whole("max_turns", value)


def checked_max_calls(value: Any) -> int | None:
    """``value`` if it is a limit of calls or None; else ValueError."""
    return None if value is None else _whole("max_calls", value)


def checked_max_cost(value: Any) -> Decimal | None:
    """``value`` as a Decimal if it is a limit of cost or None; else ValueError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not value > 0:
        raise ValueError(f"max_cost is a number above 0, not {value!r}")
    return Decimal(str(value))


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} is a whole number from 1 on, not {value!r}")
    return value
