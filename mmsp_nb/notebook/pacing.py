"""How often an output may be drawn: often enough to look alive, seldom enough for every front end.

The budget holds for everything that one answer draws: at most 12 messages and 100 kB in any second.
"""

from __future__ import annotations

from collections import deque

__all__ = ["BYTES", "SPARE", "WINDOW", "Pacer", "ticks"]

GAP = 0.125
"""Seconds between two updates of a running text. The next delta is never older than this when it is drawn.

Eight updates fit in a second then, and four finished parts beside them.
"""

SLOW_GAP = 0.2
"""The same once a text is long (`LONG`), or for what matters less."""

LONG = 100_000
MESSAGES = 12
SPARE = 12_000
BYTES = 100_000 - SPARE
"""Bytes of updates in a second; beside them the last part of an answer has to fit in."""

WINDOW = 1.02
"""Seconds that the limits hold for: a little more than one, since messages don't all travel equally fast."""


class Pacer:
    """Knows when the next update may go out. Times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._sent: deque[tuple[float, int]] = deque()
        self._bytes = 0
        self._last = float("-inf")

    def sent(self, now: float, size: int, *, drawn: float | None = None) -> None:
        """A message of ``size`` bytes has gone out. What it shows is of the time ``drawn``: the gap begins there."""
        self._sent.append((now, size))
        self._bytes += size
        self._last = now if drawn is None else drawn
        self._forget(now)

    def ready_at(
        self, now: float, *, size: int = 0, messages: int = 1, first: bool = False, slow: bool = False
    ) -> float:
        """The earliest time for an update of that many messages and about ``size`` bytes.

        With ``first``, nothing of this output is on the screen yet, so the usual gap is not kept.
        """
        self._forget(now)
        at = now if first else max(now, self._last + (SLOW_GAP if slow else GAP))
        surplus = len(self._sent) + messages - MESSAGES
        if surplus > 0:
            at = max(at, self._sent[min(surplus, len(self._sent)) - 1][0] + WINDOW)
        spent = self._bytes
        for time, sent in self._sent:
            if spent + size <= BYTES:
                break
            spent -= sent
            at = max(at, time + WINDOW)
        return at

    def left(self, now: float) -> tuple[int, int]:
        """How many messages and bytes may go out at once."""
        self._forget(now)
        return MESSAGES - len(self._sent), BYTES - self._bytes

    def _forget(self, now: float) -> None:
        while self._sent and self._sent[0][0] <= now - WINDOW:
            self._bytes -= self._sent.popleft()[1]


def ticks(seconds: float) -> float:
    """The next whole second after ``seconds`` at which a waiting line counts on: ever more seldom, never a storm."""
    step = 1 if seconds < 10 else 5 if seconds < 60 else 30
    return (int(seconds + 1e-6) // step + 1) * step
