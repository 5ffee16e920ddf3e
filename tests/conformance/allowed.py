"""Where this package differs from the reference on purpose, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .rig import Difference

Check = Callable[[Difference, dict[str, Any], dict[str, Any]], bool]


@dataclass(frozen=True)
class Allowed:
    """One reason for differences.

    quirk: an id of the protocol's quirk register, or ``better`` for an improvement of our own.
    why: one line, printed in the report.
    cases, paths: globs of case ids and of paths within the result; any of them may match.
    check: more conditions on the difference and the two whole results.
    """

    quirk: str
    why: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)
    check: Check | None = None

    def covers(self, case: str, difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
        if not any(fnmatchcase(case, pattern) for pattern in self.cases):
            return False
        if not any(fnmatchcase(difference.path, pattern) for pattern in self.paths):
            return False
        return self.check is None or self.check(difference, reference, ours)


ALLOWED: list[Allowed] = []
