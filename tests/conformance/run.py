"""The full comparison with the reference, live: ``python tests/conformance/run.py`` (``make conformance``).

Both implementations run every case against the same loopback provider. The last line is
``N same, M better (listed), 0 differ``; the exit status is 1 when anything differs.

--record      write the reference's results to ``data/`` for the ordinary test suite
--reference   only the reference: record without comparing
--recorded    compare with the recorded results instead of running the reference
--only GLOB   some cases: ``openai-chat/*``, ``*/streams/*``
--verbose     also say what each allowed difference is
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    __package__ = "conformance"

from mmsp_nb.testing.streams import PNG

from . import record
from .cases import all_cases
from .compare import Report, judge
from .driver import Implementation, run_case
from .reference import Reference
from .rig import Case, Stage


class Ours:
    """This package, in this process, on one event loop."""

    def __init__(self) -> None:
        self._implementation = Implementation("mmsp_nb")
        self._runner = asyncio.Runner()

    def __enter__(self) -> Ours:
        return self

    def __exit__(self, *unused: object) -> None:
        self._runner.close()

    def run(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._runner.run(run_case(payload, self._implementation))


def reference_results(cases: list[Case]) -> record.Results:
    results: record.Results = {}
    with Reference() as reference, Stage(PNG) as stage:
        for number, case in enumerate(cases, 1):
            results[case.id] = (case.digest, stage.perform(case, reference.run))
            if number % 200 == 0:
                print(f"  reference: {number} of {len(cases)}", file=sys.stderr, flush=True)
    return results


def our_results(cases: list[Case]) -> dict[str, dict[str, Any]]:
    with Ours() as ours, Stage(PNG) as stage:
        return {case.id: stage.perform(case, ours.run) for case in cases}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    cases = [case for case in all_cases() if fnmatchcase(case.id, options.only)]
    started = time.monotonic()
    references = record.load() if options.recorded else reference_results(cases)
    print(f"{len(cases)} cases, reference {time.monotonic() - started:.0f} s")
    if options.record or options.reference:
        kept = {} if options.only == "*" else record.load()
        print(f"recorded {record.save({**kept, **references}):,} bytes")
    if options.reference:
        return 0
    report = Report()
    ours = our_results(cases)
    for case in cases:
        report.add(judge(case.id, references[case.id][1], ours[case.id]))
    report.print(verbose=options.verbose, whole=options.only == "*")
    return 1 if report.differing or (options.only == "*" and report.unused()) else 0


if __name__ == "__main__":
    sys.exit(main())
