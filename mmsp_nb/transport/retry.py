"""Which refusals are worth another try, and after how long. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

__all__ = ["RetryPolicy", "retry_after"]

_STATUSES = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most ``retries`` further tries; waits double from ``base`` to ``cap`` seconds, with jitter.

    A server's own wish (Retry-After) is followed up to ``longest`` seconds. When it is longer there is no other try:
    nobody should wait in silence for what will be refused again.
    """

    retries: int = 2
    base: float = 0.5
    cap: float = 8.0
    longest: float = 60.0

    def __post_init__(self) -> None:
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ValueError(f"retries must be 0 or a positive whole number, not {self.retries!r}")

    def retryable(self, status: int, headers: Mapping[str, str], after: float | None = None) -> bool:
        """Whether an answer with ``status``, which wants no request for ``after`` seconds, is to be asked for again."""
        if after is not None and after > self.longest:
            return False
        wish = headers.get("x-should-retry")
        if wish in ("true", "false"):
            return wish == "true"
        return status in _STATUSES or status >= 500

    def delay(self, attempt: int, wish: float | None, jitter: float) -> float:
        """Seconds to wait after failed try number ``attempt`` (from 0); ``jitter`` is in [0, 1)."""
        if wish is not None:
            return wish
        return min(self.base * 2.0**attempt, self.cap) * (1 - 0.25 * jitter)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The wait in seconds that a server asks for (``now`` in Unix seconds), or None.

    Understands ``retry-after-ms``, and ``retry-after`` in seconds or as an HTTP date.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        date = parsedate_to_datetime(headers["retry-after"])
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    except (KeyError, ValueError, OverflowError, TypeError):
        return None
