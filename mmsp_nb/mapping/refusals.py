"""What a failed request means for the rows: try again, slow everybody down, give this row up, or end the run. Pure."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import Literal

from mmsp_nb.protocol.errors import (
    ApiKeyRequiredError,
    AuthenticationError,
    CassetteMissError,
    ConnectionCutError,
    ConnectionFailedError,
    EmptyResponseError,
    IncompleteStreamError,
    RequestTimeoutError,
    ResponseFormatError,
    RoutingError,
    StreamProtocolError,
    ToolCallArgumentParseError,
    UnsupportedOperationError,
    UnsupportedParameterError,
)

__all__ = ["LONGEST", "Meaning", "backoff", "meaning", "wish"]

Meaning = Literal["again", "slower", "row", "run"]

LONGEST = 600.0
"""Seconds that all rows wait when a provider wants it; a longer wish ends the run, which can be gone on with."""

_PASSING = (
    ConnectionCutError,
    ConnectionFailedError,
    EmptyResponseError,
    IncompleteStreamError,
    RequestTimeoutError,
    ResponseFormatError,
    StreamProtocolError,
    ToolCallArgumentParseError,
)
_FOR_ALL = (
    ApiKeyRequiredError,
    AuthenticationError,
    BrokenExecutor,
    RoutingError,
    UnsupportedOperationError,
    UnsupportedParameterError,
)
_EMPTY = ("insufficient_quota", "billing", "credit", "payment")
_STATUSES_AGAIN = frozenset({408, 409})
_STATUSES_SLOWER = frozenset({429, 503, 529})


def meaning(error: BaseException) -> Meaning:
    """``again``: this request may work in a moment. ``slower``: too many requests. ``row``: this row cannot be
    answered. ``run``: no row can be."""
    if isinstance(error, _FOR_ALL):
        return "run"
    if isinstance(error, CassetteMissError):
        return "row"
    if isinstance(error, _PASSING):
        return "again"
    status = getattr(error, "status", None)
    if not isinstance(status, int):
        return "row"
    code = f"{getattr(error, 'code', None) or getattr(error, 'error_type', None) or ''}".lower()
    if status == 402 or (status == 429 and any(word in code for word in _EMPTY)):
        return "run"
    if status in _STATUSES_SLOWER:
        return "run" if (wish(error) or 0) > LONGEST else "slower"
    return "again" if status in _STATUSES_AGAIN or status >= 500 else "row"


def wish(error: BaseException) -> float | None:
    """The seconds that a provider wants to be left alone, or None."""
    found = getattr(error, "retry_after", None)
    return float(found) if isinstance(found, int | float) else None


def backoff(attempt: int, jitter: float, *, base: float = 0.5, cap: float = 30.0) -> float:
    """Seconds to wait after failed try number ``attempt``, from 0; ``jitter`` is in [0, 1)."""
    longest: float = min(base * 2.0**attempt, cap)
    return longest * (1 - 0.25 * jitter)
