"""`Gate`: where every request of a run waits for its turn. `Gated`: a client behind it, which tries again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from mmsp_nb import gauge
from mmsp_nb.mapping.rates import Rates, Use, Width
from mmsp_nb.mapping.refusals import backoff, meaning, wish
from mmsp_nb.mapping.workers import counts
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import RequestTimeoutError
from mmsp_nb.protocol.items import UniMessage

__all__ = ["Gate", "Gated"]

REFUSALS = 10
"""So often is one request refused for too many requests before its row is given up."""

FIRST_OUTPUT = 500
"""Tokens that an answer is taken to have before one has come."""


class Gate:
    """Lets requests out one by one, as the limits, the width and the provider's wishes allow.

    Args:
        rates: The limits.
        width: Requests on their way at once.
        clock, sleep, jitter: For tests; seconds.

    Attributes:
        waiting: Until when, by ``clock``, everybody waits because of a refusal.
        requests: How many went out.
        refused: How many of them were refused for too many requests.
    """

    def __init__(
        self,
        rates: Rates,
        width: int,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.rates = rates
        self.width = Width(width)
        self.clock = clock or asyncio.get_running_loop().time
        self.sleep = sleep
        self.jitter = jitter
        self.waiting = float("-inf")
        self.requests = self.refused = 0
        self._outputs = self._answers = 0
        self._running = 0
        self._turn = asyncio.Lock()  # who holds it is the next one to go out
        self._room = asyncio.Event()
        self._refusals_in_a_row = 0
        self._refused_at = float("-inf")

    def size(self, message: UniMessage, config: Mapping[str, Any], known: int) -> int:
        """About how many tokens a request takes, its answer included; 0 where nobody counts them."""
        if not self.rates.by_tokens:
            return 0
        if not known:
            known = gauge.estimate(str(config.get("system_prompt") or ""))
        first = min(config.get("max_tokens") or FIRST_OUTPUT, FIRST_OUTPUT)
        return known + gauge.estimate(message) + (self._outputs // self._answers if self._answers else first)

    async def enter(self, size: int) -> Use:
        """Wait for one's turn. What it returns is for `leave`."""
        async with self._turn:
            while True:
                while self._running >= self.width.now:
                    self._room.clear()
                    await self._room.wait()
                delay = self.rates.delay(self.clock(), size)
                if delay <= 0:
                    break
                await self.sleep(delay)
            self._running += 1
            self.requests += 1
            return self.rates.take(self.clock(), size)

    def leave(self, use: Use, usage: Mapping[str, Any] | None = None, *, answered: bool = False) -> None:
        """A request has ended, with ``usage`` if it was answered."""
        self._running -= 1
        self._room.set()
        if not answered:
            return
        self.width.faster()
        self._refusals_in_a_row = 0
        total = tokens.totals(usage)
        if total.output is not None:
            self._outputs += total.output
            self._answers += 1
        if total.total is not None:
            self.rates.settle(use, total.total)

    def slow_down(self, use: Use, wanted: float | None) -> None:
        """The provider has refused ``use`` for too many requests, and may have said for how long: all wait."""
        now = self.clock()
        self.refused += 1
        if use.at > self._refused_at:  # those that were on their way with it tell nothing new
            self.width.slower()
            self._refusals_in_a_row += 1
            self._refused_at = now
        delay = backoff(self._refusals_in_a_row - 1, self.jitter(), base=1.0, cap=60.0) if wanted is None else wanted
        self.waiting = max(self.waiting, now + delay)
        self.rates.hold(now + delay)


class Gated:
    """The client of one row: each request waits at the gate, and is sent again when it failed in passing.

    Only complete items and the stop are handed on, when all have come: nobody watches, and an answer that breaks off
    is asked for anew.

    Attributes:
        client: The client behind it, with a history of its own.
        attempts: How many requests were made.
    """

    def __init__(self, client: Any, gate: Gate, *, retries: int, timeout: float | None) -> None:
        self.client = client
        self.attempts = 0
        self._gate = gate
        self._retries = retries
        self._timeout = timeout
        self._known = 0  # tokens of the history, as the provider has counted them

    def __getattr__(self, name: str) -> Any:
        if name == "client":  # not made yet: copying looks around
            raise AttributeError(name)
        return getattr(self.client, name)

    async def streaming_response_stateful(
        self, message: UniMessage, config: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Any, None]:
        """The answer, all of it at once. Raises what the last try raised."""
        for event in await self._answer(message, config or {}):
            yield event

    async def _answer(self, message: UniMessage, config: Mapping[str, Any]) -> list[Any]:
        failed = refused = 0
        while True:
            use = await self._gate.enter(self._gate.size(message, config, self._known))
            self.attempts += 1
            try:
                events = await self._try(message, config)
            except BaseException as error:
                self._gate.leave(use)
                kind = meaning(error)
                if kind == "slower":
                    self._gate.slow_down(use, wish(error))
                    refused += 1
                    if refused >= REFUSALS or not self._retries:
                        raise
                    continue
                if kind != "again" or failed >= self._retries:
                    raise
            else:
                usage = events[-1].get("usage_metadata") if events else None
                self._known = tokens.totals(usage).total or 0
                self._gate.leave(use, usage, answered=True)
                return events
            await self._gate.sleep(backoff(failed, self._gate.jitter()))
            failed += 1

    async def _try(self, message: UniMessage, config: Mapping[str, Any]) -> list[Any]:
        stream = self.client.streaming_response_stateful(message=message, config=config)
        deadline = asyncio.timeout(self._timeout)
        kept: list[Any] = []
        try:
            async with deadline, contextlib.aclosing(stream) as events:
                async for event in events:
                    if counts(event):
                        kept.append(event)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise RequestTimeoutError(
                f"no whole answer within {self._timeout:g} s (timeout)", timeout=self._timeout
            ) from None
        return kept
