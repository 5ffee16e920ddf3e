"""How fast rows may be asked: limits by requests and by tokens, and a width that gives way. Pure: time comes in.

A limit is kept over every stretch of its length, not over the minutes of the clock: ``60/min`` lets 60 requests out at
once, then each next one a minute after the one that was 60 before it. (A bucket that is refilled while it is emptied
would let nearly twice as many through in its first minute.)
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from mmsp_nb.protocol.suggestions import did_you_mean, shown

__all__ = ["Limit", "Rates", "Use", "Width", "parse_limits"]

Unit = Literal["requests", "tokens"]

_PERIODS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "d", "days"), 86400.0),
}
_BOTH: tuple[Unit, Unit] = ("requests", "tokens")
_UNITS: dict[str, Unit] = {
    **dict.fromkeys(("requests", "request", "req", "rows", "row", "r"), "requests"),
    **dict.fromkeys(("tokens", "token", "tok", "t"), "tokens"),
}
_SHORT: dict[str, tuple[Unit, float]] = {
    f"{unit[0]}p{period}": (unit, seconds)
    for unit in _BOTH
    for period, seconds in (("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0))
}
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
_PART = re.compile(
    r"(?P<amount>\d[\d_,]*(?:\.\d+)?)\s*(?P<factor>[kKM]?)(?![a-zA-Z])\s*(?P<unit>[a-zA-Z]*)\s*"
    r"(?:(?:/|\bper\b)\s*(?P<count>\d+)?\s*(?P<period>[a-zA-Z]+))?\s*\Z"
)
_BETWEEN = re.compile(r"\s*(?:(?<!\d),|,(?!\d{3}\b)|;|\+|\band\b)\s*")
_HOW = "write it like '60/min', '2/s' or '60/min, 100k tokens/min'"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``amount`` requests or tokens in any ``period`` seconds."""

    amount: int
    unit: Unit
    period: float


def parse_limits(limit: str | Iterable[str] | None) -> tuple[Limit, ...]:
    """The limits in ``"60/min"``, ``"100k tokens/min"``, ``"60/min, 100k tokens/min"``, ``"2/s"``, ``"60 rpm"``.

    Raises ValueError, in one line, for what says no limit.
    """
    if limit is None:
        return ()
    if isinstance(limit, str):
        parts: Iterable[Any] = _BETWEEN.split(limit.strip())
    elif isinstance(limit, list | tuple):
        parts = limit
    elif isinstance(limit, int | float) and not isinstance(limit, bool):
        raise ValueError(f"limit {limit!r} says no time: did you mean '{limit}/min'?")
    else:
        raise ValueError(f"limit is a text: {_HOW}, not {shown(limit)}")
    return tuple(_parsed(part) for part in parts)


def _parsed(text: Any) -> Limit:
    found = _PART.match(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"limit {text!r:.60} cannot be read: {_HOW}")
    word, period_word = found["unit"].lower(), found["period"]
    if period_word is None:
        if word not in _SHORT:
            near = (
                did_you_mean(word, _SHORT) if word and word not in _UNITS else f"; did you mean '{text.strip()}/min'?"
            )
            raise ValueError(f"limit {text!r:.60} says no time{near or f': {_HOW}'}")
        unit, period = _SHORT[word]
    else:
        if word and word not in _UNITS:
            near = did_you_mean(word, ("requests", "tokens")) or f": {_HOW}"
            raise ValueError(f"limit {text!r:.60}: {word!r} is not what can be counted{near}")
        if period_word.lower() not in _PERIODS:
            near = did_you_mean(period_word, ("s", "sec", "min", "hour", "day")) or f": {_HOW}"
            raise ValueError(f"limit {text!r:.60}: {period_word!r} is no time{near}")
        unit = _UNITS[word] if word else "requests"
        period = _PERIODS[period_word.lower()] * int(found["count"] or 1)
    amount = float(found["amount"].replace(",", "").replace("_", "")) * _FACTORS[found["factor"].lower()]
    if not amount or not period:
        raise ValueError(f"limit {text!r:.60} lets nothing through: use a number above 0, or leave it out")
    whole = max(int(amount), 1)
    return Limit(whole, unit, period * whole / amount)  # 0.5/s is one in two seconds


@dataclass(slots=True, eq=False)
class Use:
    """One request that was let through: when, in seconds, and what it takes of each limit."""

    at: float
    tokens: int


class _Window:
    """The uses of the last ``period`` seconds."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._uses: deque[Use] = deque()
        self._total = 0
        self._cutoff = float("-inf")  # what was used until then has left the window

    def _size(self, use: Use) -> int:
        return 1 if self.limit.unit == "requests" else use.tokens

    def delay(self, now: float, tokens: int) -> float:
        """Seconds until a request of that size fits."""
        self._cutoff = now - self.limit.period
        while self._uses and self._uses[0].at <= self._cutoff:
            self._total -= self._size(self._uses.popleft())
        # what is larger than the whole limit goes out when nothing else is in the window
        wanted = min(1 if self.limit.unit == "requests" else tokens, self.limit.amount)
        over, wait = self._total + wanted - self.limit.amount, 0.0
        for use in self._uses:
            if over <= 0:
                break
            over -= self._size(use)
            wait = use.at + self.limit.period - now
        return wait

    def add(self, use: Use) -> None:
        self._uses.append(use)
        self._total += self._size(use)

    def corrected(self, use: Use, tokens: int) -> None:
        """``use`` is about to be known to have ``tokens``."""
        if self.limit.unit == "tokens" and use.at > self._cutoff:
            self._total += tokens - use.tokens


class Rates:
    """Limits that hold together, and a pause that everybody keeps. Times are in seconds of any one clock.

    Attributes:
        by_tokens: Whether tokens are limited, so that the size of a request is to be known.
    """

    def __init__(self, limits: Iterable[Limit] = ()) -> None:
        self._windows = [_Window(limit) for limit in limits]
        self._held_until = float("-inf")
        self.by_tokens = any(window.limit.unit == "tokens" for window in self._windows)

    def delay(self, now: float, tokens: int = 0) -> float:
        """Seconds from ``now`` until a request of about ``tokens`` may go out; 0 for at once."""
        waits = [window.delay(now, tokens) for window in self._windows]
        return max(0.0, self._held_until - now, *waits)

    def take(self, now: float, tokens: int = 0) -> Use:
        """A request goes out."""
        use = Use(now, tokens)
        for window in self._windows:
            window.add(use)
        return use

    def settle(self, use: Use, tokens: int) -> None:
        """So many tokens it has really been."""
        for window in self._windows:
            window.corrected(use, tokens)
        use.tokens = tokens

    def hold(self, until: float) -> None:
        """Nobody goes out before ``until``."""
        self._held_until = max(self._held_until, until)


class Width:
    """How many requests may be on their way at once: halved when a provider refuses, widened again by answers."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._now = float(most)

    @property
    def now(self) -> int:
        return int(self._now)

    def slower(self) -> None:
        """A provider has refused for too many requests."""
        self._now = max(1.0, self._now / 2)

    def faster(self) -> None:
        """An answer has come: about one more for as many answers as run at once."""
        self._now = min(float(self.most), self._now + 1 / self._now)
