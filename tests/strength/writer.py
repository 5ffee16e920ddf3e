"""Writes files of one kind again and again, and says after each what is in them now: to be ended at any moment.

``python writer.py KIND FOLDER [--limit BYTES]``. KIND: save, trace or cassette.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

from mmsp_nb import Conversation, tracing
from mmsp_nb.restoring import turns_of
from mmsp_nb.transport.cassette import Cassette
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.wire import WireRequest

FILLING = "x" * 20_000
"""Makes a record longer than any buffer on its way."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["save", "trace", "cassette"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--times", type=int, default=100_000)
    given = parser.parse_args()
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    if given.limit is not None:  # as on a full disk, writing goes so far and no further
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.limit, most))
    warnings.showwarning = lambda message, *args: print(f"warning {message}", flush=True)
    warnings.simplefilter("always")
    write = {"save": save, "trace": trace, "cassette": cassette}[given.kind]
    step = write(given.folder)
    for number in range(1, given.times + 1):
        try:
            step(number)
        except OSError as error:
            print(f"failed {type(error).__name__} {error}", flush=True)
            continue
        print(f"wrote {number}", flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))  # who measures coverage writes at the end


def messages(number: int) -> list[dict]:
    asked = {"role": "user", "content_items": [{"type": "text.done", "text": str(number)}]}
    said = {"role": "assistant", "content_items": [{"type": "text.done", "text": f"{number} {FILLING}"}]}
    return [asked, said]


def save(folder: Path):
    chat = Conversation("demo")

    def step(number: int) -> None:
        chat.turns[:] = turns_of(messages(number), "demo")
        chat.save(folder / "talk.jsonl")

    return step


def trace(folder: Path):
    os.environ["MMSP_CACHE_DIR"] = str(folder)
    return lambda number: tracing.save("talk", messages(number), {"trace_id": "talk"}, "demo")


def cassette(folder: Path):
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def handler(request):
        async def body():
            yield b'{"filling": "%s", ' % FILLING.encode()
            yield b'"asked": %s}' % request.content

        yield 200, {"content-type": "application/json"}, body()

    tape = Cassette(folder / "talk.jsonl", "new", handler=handler)
    transport = Transport(handler=tape)

    async def ask(number: int) -> None:
        request = WireRequest("POST", "http://127.0.0.1:1/v1/x", {}, json.dumps(number).encode(), "json")
        async with await transport.send(request, client="C") as response:
            await response.json()

    return lambda number: asyncio.run(ask(number))


if __name__ == "__main__":
    sys.exit(main())
