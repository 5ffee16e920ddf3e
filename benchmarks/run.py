"""Runs the benchmarks and writes `RESULTS.md` beside this file.

    python benchmarks/run.py [--quick] [NAME ...]

NAME: modules of `sections`; only these run, and only their parts of the results are written anew. `sections` says how
to add one.

Each figure stands beside that of a peer in the same run: absolute times say little on a machine that others use, ratios
do. Measures alternate with their peer, the medians are compared, and where nothing is waited for it is CPU time. The
reference package is measured where `make conformance` has made its environment.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sections
from rig import HERE, Bench, Section


def modules() -> dict[str, Any]:
    """The modules of `sections` by name, in the order of the results."""
    found = {
        each.name: importlib.import_module(f"sections.{each.name}") for each in pkgutil.iter_modules(sections.__path__)
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1].PLACE))


def head() -> str:
    return (
        "# Benchmarks\n\nWritten by `make bench`. Every figure stands beside a peer's of the same run; the two "
        "alternate, and medians are given. CPU time wherever nothing is waited for. The server is another process on "
        "loopback.\n\n"
        f"Python {platform.python_version()}, {platform.system()} on {os.cpu_count()} cores; httpx {version('httpx')}, "
        f"pydantic {version('pydantic')}, IPython {version('ipython')}."
    )


def written(text: str) -> dict[str, str]:
    """The parts of results that were written before, by title."""
    return {part.splitlines()[0]: f"## {part.strip()}" for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}


def main() -> None:
    known = modules()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones; default is all: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that all of it runs")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    bench = Bench(quick=options.quick)
    found: list[Section] = []
    try:
        for name in options.names or known:
            for section in known[name].run(bench):
                print(section.markdown(), end="\n\n", flush=True)
                found.append(section)
    finally:
        bench.close()
    before = written(options.output.read_text(encoding="utf-8")) if options.names and options.output.exists() else {}
    parts = {**before, **{section.title: section.markdown() for section in found}}
    options.output.write_text("\n\n".join([head(), *parts.values()]) + "\n", encoding="utf-8")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
