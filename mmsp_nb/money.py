"""What a conversation takes and costs, what it may cost, and what all of them together may.

A budget is looked at before anything is sent: what was spent, and what the next request is estimated to cost by list
price, must stay within it. The price of the answer is not known then, so that one answer can go beyond it. Prices that
are not known count as nothing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from mmsp_nb import choosing, gauge
from mmsp_nb.gauge import Gauge
from mmsp_nb.limits import Cost
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.items import UniMessage, UsageMetadata
from mmsp_nb.turns import Turn, join

if TYPE_CHECKING:
    from mmsp_nb.questions import Prompt

__all__ = ["BESIDES", "BudgetExceededError", "Ledger", "Paying", "beyond", "checked_budget", "dollars", "spending"]


BESIDES = "-"
"""Stands, among the ids of turns, for all that a file says was spent on turns it does not hold."""


class BudgetExceededError(MMSPError):
    """A budget does not allow the next request; nothing was sent, and the prompt is kept.

    Raise the budget, or set it to None, then ``ask()`` without a prompt (``%mmsp continue``) sends it.
    """


def checked_budget(value: Any, name: str = "budget") -> Decimal | None:
    """``value`` as a Decimal if it is an amount of US dollars, as a number or in words, or None; else ValueError."""
    if value is None:
        return None
    amount = value.strip().removeprefix("$").replace("_", "") if isinstance(value, str) else value
    try:
        if isinstance(amount, bool) or not isinstance(amount, str | int | float | Decimal):
            raise ValueError
        found = Decimal(str(amount))
        if not found.is_finite() or found < 0:
            raise ValueError
    except (InvalidOperation, ValueError):
        raise ValueError(
            f"{name} is an amount of US dollars such as 0.50, or None for no limit, not {value!r:.60}"
        ) from None
    return found


def dollars(amount: Decimal) -> str:
    """``$0.0125``: small amounts are not rounded to nothing."""
    shown = f"{amount:.4f}"
    return f"${shown}" if not amount or Decimal(shown) else f"${amount:.1g}"


class Ledger:
    """What all conversations of this process have cost, and may cost.

    Attributes:
        spent: US dollars by list price since the process began, or since `reset`; unknown prices count as nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spent = Decimal(0)
        self._budget: Decimal | None = None

    @property
    def budget(self) -> Decimal | None:
        """US dollars that they may cost together; None for no limit. May be set, also to a number or a text."""
        return self._budget

    @budget.setter
    def budget(self, value: Decimal | float | str | None) -> None:
        self._budget = checked_budget(value)

    def add(self, cost: Decimal | None) -> None:
        """An answer has come. From any thread."""
        if cost is not None:
            with self._lock:
                self.spent += cost

    def reset(self) -> None:
        """Count from nothing again. The budget stays."""
        with self._lock:
            self.spent = Decimal(0)

    def __repr__(self) -> str:
        limit = "no budget" if self._budget is None else f"of a budget of {dollars(self._budget)}"
        return f"<{dollars(self.spent)} spent, {limit}>"


spending = Ledger()
"""The ledger of this process: of a notebook, that of its kernel."""


def beyond(limits: Iterable[tuple[Decimal, str]], price: Decimal | None) -> str:
    """Which of ``limits`` (what is left, its name) a request of this price is beyond, in words; nothing when none."""
    price = price or Decimal(0)
    for left, name in limits:
        if left <= 0 or price > left:
            return name + (f", and this request about {dollars(price)} by itself" if left > 0 else "")
    return ""


class Paying:
    """What a conversation takes and costs. `Conversation` inherits it."""

    turns: list[Turn]
    branches: Any
    client: Any
    config: dict[str, Any]
    model: Any
    max_cost: Decimal | None
    _before: list[UniMessage]
    _sent: Any

    def _open_account(self) -> None:
        self._budget: Decimal | None = None
        self._costs: dict[str, Decimal] = {}  # by the ids of turns, those that are in no branch any more included

    @property
    def usage(self) -> UsageMetadata | None:
        """Tokens of all turns together; None when none was reported."""
        total: UsageMetadata | None = None
        for turn in self.turns:
            total = total if turn.usage is None else tokens.add(total, turn.usage)
        return total

    @property
    def cost(self) -> Decimal | None:
        """List price in US dollars of the turns whose price is known; None when that is none of them."""
        costs = [turn.cost for turn in self.turns]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Decimal(0)) if known else None

    @property
    def spent(self) -> Decimal:
        """US dollars by list price of all that was ever answered here, other branches and turns that were taken back,
        reset or compared included. It is what ``budget`` is compared with, and it is saved with the conversation.
        """
        return sum({**self._costs, **dict(self._priced())}.values(), Decimal(0))

    @property
    def budget(self) -> Decimal | None:
        """US dollars that the conversation may cost; None for no limit. May be set, also to a number or a text.

        A question beyond it raises BudgetExceededError before it is sent, and its prompt is kept.
        """
        return self._budget

    @budget.setter
    def budget(self, value: Decimal | float | str | None) -> None:
        self._budget = checked_budget(value)

    def estimate(self, prompt: Prompt = None, *, images: Iterable[Any] = ()) -> Gauge:
        """How large the next request is, with ``prompt`` if given, and what part of the context window it takes."""
        from mmsp_nb.questions import user_message

        return self._measure(None if prompt is None else user_message(prompt, images), self.config)

    def _measure(self, message: UniMessage | None, config: Mapping[str, Any]) -> Gauge:
        sent = self._sent()
        messages = join(sent, self._before)
        if message is not None:
            messages.append(message)
        changed = any(turn.stale or turn.summary for turn in sent) or (bool(sent) and sent[-1] is not self.turns[-1])
        return gauge.measure(messages, config, self.client, counted=not changed)

    def _price_of(self, message: UniMessage | None, config: Mapping[str, Any], tools: Any) -> Decimal | None:
        """About what a request with ``message`` costs, its answer apart; None when prices are not known."""
        cost = choosing.cost_of(self.client)
        if cost is None:
            return None
        measured = self._measure(message, config)
        count = measured.tokens
        if not measured.exact and (schemas := tools.schemas()):  # what was counted has them in it
            count += gauge.estimate(json.dumps(schemas))
        return cost({"prompt_tokens": count, "response_tokens": 0})

    def _may_spend(self) -> Decimal | None:
        """What the loop of one answer may cost before it makes no more calls; None for any sum."""
        cost = choosing.cost_of(self.client)
        if cost is None:
            return self.max_cost
        left = min((limit for limit, _ in self._limits(cost, self.max_cost)), default=None)
        return left if left is None or left > 0 else None  # with nothing left nothing is sent at all

    def _limits(self, cost: Cost | None, max_cost: Decimal | None) -> Iterator[tuple[Decimal, str]]:
        """What is left of each limit, and how it is named; ``max_cost`` is that of the question."""
        if max_cost is not None and cost is not None:
            yield max_cost, f"a question may cost {dollars(max_cost)} (max_cost, --budget)"
        if self._budget is not None:
            yield (
                self._budget - (spent := self.spent),
                f"this conversation has cost {dollars(spent)} of its budget of {dollars(self._budget)}",
            )
        if (whole := spending.budget) is not None:
            yield (
                whole - (spent := spending.spent),
                f"all conversations have cost {dollars(spent)} of the kernel's budget of {dollars(whole)}",
            )

    def _afford(self, message: UniMessage | None, config: Mapping[str, Any], tools: Any) -> None:
        """Raise BudgetExceededError when a limit leaves less than a request with ``message`` is likely to cost."""
        limits = list(self._limits(choosing.cost_of(self.client), self.max_cost))
        if limits and (refused := beyond(limits, self._price_of(message, config, tools))):
            raise BudgetExceededError(
                f"{refused}; nothing was sent, and the prompt is kept: raise that limit or set it to None, "
                "and go on, in a notebook by %mmsp continue"
            )

    def _pay(self, turns: Iterable[Turn]) -> None:
        """These turns have been answered, for this conversation."""
        for turn in turns:
            if (cost := turn.cost) is not None:
                self._costs[turn.id] = cost

    def _priced(self) -> Iterator[tuple[str, Decimal]]:
        for turns in self.branches.values():
            for turn in turns:
                if (cost := turn.cost) is not None:
                    yield turn.id, cost

    def _besides(self) -> Decimal:
        """What was spent on turns that are in no branch, for the file."""
        kept = {turn.id for turns in self.branches.values() for turn in turns}
        return sum((cost for key, cost in self._costs.items() if key not in kept), Decimal(0))
