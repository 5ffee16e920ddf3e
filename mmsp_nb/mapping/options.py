"""How a run goes: what `map` takes beside the rows, the prompt and the client; checked before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from mmsp_nb.mapping.rates import Limit, parse_limits
from mmsp_nb.money import checked_budget
from mmsp_nb.protocol.suggestions import did_you_mean, shown

__all__ = ["CONCURRENCY", "Options"]

CONCURRENCY = 8
"""Requests on their way at once when nothing else is said."""


@dataclass(frozen=True)
class Options:
    """The options of a run, in the units it works with: seconds, US dollars."""

    limits: tuple[Limit, ...]
    concurrency: int
    retries: int
    timeout: float | None
    budget: Decimal | None
    on_error: Literal["value", "raise"]
    progress: bool | None
    checkpoint: Any
    dedupe: bool
    resume: bool

    @classmethod
    def of(cls, given: Mapping[str, Any], executor: Any = None) -> Options:
        """The options in ``given``. Raises ValueError, in one line, for one that is none."""
        concurrency = given.get("concurrency")
        if concurrency is None:
            concurrency = _workers(executor)
        on_error = given.get("on_error", "value")
        if on_error not in ("value", "raise"):
            near = did_you_mean(on_error, ("value", "raise"))
            raise ValueError(f"on_error is 'value' or 'raise', not {on_error!r:.60}{near}")
        timeout = given.get("timeout")
        if timeout is not None and not (_number(timeout) and timeout > 0 and math.isfinite(timeout)):
            raise ValueError(f"timeout is a number of seconds above 0, or None for no limit, not {shown(timeout)}")
        return cls(
            limits=parse_limits(given.get("limit")),
            concurrency=_whole("concurrency", concurrency, 1),
            retries=_whole("retries", given.get("retries", 4), 0),
            timeout=timeout,
            budget=checked_budget(given.get("budget")),
            on_error=on_error,
            progress=given.get("progress"),
            checkpoint=given.get("checkpoint"),
            dedupe=bool(given.get("dedupe")),
            resume=bool(given.get("resume", True)),
        )


def _workers(executor: Any) -> int:
    """As many as the executor can run at once, so that no request waits in it and goes out later than was allowed."""
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)  # of Dask: by worker
    if callable(threads):
        return max(sum(threads().values()), 1)
    workers = getattr(executor, "_max_workers", None)
    return workers if isinstance(workers, int) and workers > 0 else CONCURRENCY


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is a whole number from {least} on, not {shown(value)}")
    return value
