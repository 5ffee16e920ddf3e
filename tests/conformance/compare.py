"""Judging a case: same, better (every difference has a listed reason), or different."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .allowed import ALLOWED, Allowed
from .rig import Difference, differences


@dataclass(frozen=True)
class Verdict:
    case: str
    allowed: list[tuple[Difference, Allowed]]
    differing: list[Difference]


def judge(case: str, reference: dict[str, Any], ours: dict[str, Any]) -> Verdict:
    allowed, differing = [], []
    for difference in differences(reference, ours):
        entry = next((entry for entry in ALLOWED if entry.covers(case, difference, reference, ours)), None)
        if entry is None:
            differing.append(difference)
        else:
            allowed.append((difference, entry))
    return Verdict(case, allowed, differing)


@dataclass
class Report:
    same: int = 0
    better: list[Verdict] = field(default_factory=list)
    differing: list[Verdict] = field(default_factory=list)
    uses: Counter[Allowed] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        self.uses.update({entry for _, entry in verdict.allowed})
        if verdict.differing:
            self.differing.append(verdict)
        elif verdict.allowed:
            self.better.append(verdict)
        else:
            self.same += 1

    def unused(self) -> list[Allowed]:
        """Entries that excuse nothing any more: they have to go."""
        return [entry for entry in ALLOWED if not self.uses[entry]]

    @property
    def summary(self) -> str:
        return f"{self.same} same, {len(self.better)} better (listed), {len(self.differing)} differ"

    def print(self, *, verbose: bool, whole: bool) -> None:
        for verdict in self.differing:
            print(f"DIFFERS {verdict.case}")
            for difference in verdict.differing:
                print(f"    {difference}")
        if verbose:
            for verdict in self.better:
                print(f"better  {verdict.case}")
                for difference, entry in verdict.allowed:
                    print(f"    [{entry.quirk}] {difference}")
        for entry in ALLOWED:
            if self.uses[entry]:
                print(f"{self.uses[entry]:5}  {entry.quirk:6} {entry.why}")
        for entry in self.unused() if whole else []:
            print(f"UNUSED {entry.quirk} {entry.why}")
        print(self.summary)
