"""Looks for faults, guided by coverage: ``run_fuzz.py [--time SECONDS] [TARGET ...]`` (``make fuzz``).

Runs in an environment with Atheris, each target in a process of its own, one after the other. Inputs that reached
something new stay below ``--work`` (out/fuzz) for the next run. What fails is kept there as ``<target>-crash-...``, and
the exit status is 1: put a small version of it into ``regressions/``, and fix the fault.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE.parent.parent / "out" / "fuzz"
MEMORY = 1_500
"""MB a target may take."""
SECONDS = 5
"""A single input may take."""


def fuzz(name: str, seconds: int, work: Path) -> None:
    """In a process of its own: fuzz one target. Does not return."""
    import atheris

    with atheris.instrument_imports(include=["mmsp_nb"]):
        from fuzz_targets import TARGETS

    target, corpus = TARGETS[name], work / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = work / f"{name}.dict"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words or "0"))
    limits = [
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS}",
        f"-rss_limit_mb={MEMORY}",
        f"-max_len={target.longest}",
    ]
    places = [f"-dict={words}", f"-artifact_prefix={work}/{name}-", "-print_final_stats=1", "-verbosity=1"]
    atheris.Setup([sys.argv[0], *limits, *places, str(corpus)], target.run)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(chr(byte) if 32 < byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word.encode())


def main() -> int:
    sys.path.insert(0, str(HERE))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--time", type=int, default=60, help="seconds for each target (default 60)")
    parser.add_argument("--work", type=Path, default=WORK, help="where inputs and failures are kept")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    work = options.work.absolute()
    if options.in_process:
        fuzz(options.targets[0], options.time, work)
    from fuzz_targets import TARGETS

    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    work.mkdir(parents=True, exist_ok=True)
    print(f"{'target':<18} {'inputs':>10} {'seconds':>8} {'edges':>7} {'corpus':>7}  outcome", flush=True)
    failed = False
    for name in options.targets or TARGETS:
        failed |= _run(name, options.time, work)
    return int(failed)


def _run(name: str, seconds: int, work: Path) -> bool:
    """Fuzz one target in its process and print a line about it; whether it failed."""
    before, start = set(work.glob(f"{name}-*-*")), time.monotonic()
    command = [sys.executable, "-W", "ignore", str(HERE / "run_fuzz.py"), "--in-process", "--work", str(work)]
    done = subprocess.run([*command, "--time", str(seconds), name], stderr=subprocess.PIPE, check=False)
    log = done.stderr.decode("utf-8", "replace")
    (work / f"{name}.log").write_text(log, encoding="utf-8")
    inputs = re.findall(r"(?:number_of_executed_units: |^#)(\d+)", log, re.MULTILINE)
    edges, corpus = re.findall(r" cov: (\d+)", log), re.findall(r" corp: (\d+)", log)
    kept = sorted(path.name for path in set(work.glob(f"{name}-*-*")) - before)
    outcome = "no fault" if done.returncode == 0 else f"FAULT {', '.join(kept) or f'status {done.returncode}'}"
    row = (
        max(map(int, inputs), default=0),
        time.monotonic() - start,
        int((edges or [0])[-1]),
        int((corpus or [0])[-1]),
    )
    print("{:<18} {:>10,} {:>8.0f} {:>7,} {:>7,}  ".format(name, *row) + outcome, flush=True)
    return done.returncode != 0


if __name__ == "__main__":
    raise SystemExit(main())
