"""``python -m mmsp_nb.local fetch | demo | serve | status``."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Sequence

from . import choose
from .errors import LocalModelError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mmsp_nb.local", description="Models without a key.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="fetch | demo | serve | status")
    commands.add_parser("fetch", help="fetch the weights of the local model (93 MB, once)")
    demo = commands.add_parser("demo", help="serve the demo model until interrupted", epilog=_orders())
    demo.formatter_class = argparse.RawDescriptionHelpFormatter
    demo.add_argument("--port", type=int, default=0, help="port (default: a free one)")
    demo.add_argument("--delay", type=float, default=0.0, help="seconds between the pieces of an answer (default 0)")
    serve = commands.add_parser("serve", help="serve the local model until interrupted")
    serve.add_argument("--port", type=int, default=0, help="port (default: a free one)")
    serve.add_argument("--threads", type=int, default=None, help="threads that compute (default: by the usable cores)")
    serve.add_argument("--stdin", action="store_true", help=argparse.SUPPRESS)
    commands.add_parser("status", help="say which model would be used here, and what is missing for others")
    return parser


def _orders() -> str:
    from .rules.faults import COMMANDS

    lines = [f"  demo: {command:18} {effect}" for command, effect in COMMANDS.items()]
    return "A prompt may order a failure:\n" + "\n".join(lines)


def environment(base_url: str, key: str, model: str) -> list[str]:
    """The shell lines that lead this package, or any other client, to a server."""
    return [
        f"export OPENAI_BASE_URL={base_url}/v1 OPENAI_API_KEY={key}",
        f"export ANTHROPIC_BASE_URL={base_url} ANTHROPIC_API_KEY={key}",
        f"export GEMINI_BASE_URL={base_url} GEMINI_API_KEY={key}",
        f"export MMSP_MODEL={model} CLIENT_TYPE=openai-chat",
    ]


def _serve_until_interrupted(name: str, base_url: str, key: str, model: str) -> None:
    print(f"{name} at {base_url}  (end with Ctrl-C)\n", flush=True)
    print("\n".join(environment(base_url, key, model)), flush=True)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    # a wait without a limit could not be interrupted on Windows
    while not done.wait(1):
        pass


def _demo(port: int, delay: float) -> int:
    from .demo import DemoServer

    try:
        server = DemoServer(delay, port=port).start()
    except OSError as error:
        print(f"cannot listen on port {port}: {error}", file=sys.stderr)
        return 1
    with contextlib.closing(server):
        # "demo" would be resolved to a server of the other process's own
        _serve_until_interrupted("The demo model", server.base_url, "demo", "demo-model")
    return 0


def _serve(port: int, threads: int | None) -> int:
    from .llama import LocalModel

    with LocalModel(port=port, threads=threads) as model:
        _serve_until_interrupted("The local model", model.base_url, model.api_key, model.model)
    return 0


def _status() -> int:
    from .llama import threads_for, usable_cores
    from .weights import find

    runtime = importlib.util.find_spec("xllamacpp") is not None
    weights = find()
    cores = usable_cores()
    print("demo    ready")
    print(f"local   {'ready' if runtime and weights else 'not ready'}")
    missing = 'missing: pip install "mmsp-nb[local]"'
    print(f"          runtime  {'xllamacpp' if runtime else missing}")
    print(f"          weights  {weights or 'missing: python -m mmsp_nb.local fetch'}")
    print(f"          threads  {threads_for(cores)} of {cores} usable core(s)")
    choice = choose(os.environ)
    print(f"default {choice.model} ({choice.why})")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "fetch":
                from .weights import fetch

                print(fetch())
                return 0
            case "demo":
                return _demo(options.port, options.delay)
            case "serve" if options.stdin:
                from .child import run

                return run()
            case "serve":
                return _serve(options.port, options.threads)
            case _:
                return _status()
    except LocalModelError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
