"""The other side of every benchmark: a loopback server in a process of its own, so that its CPU time is not counted.

    python benchmarks/server.py        prints its port, and ends with its stdin

It answers ``POST /<pace>/<dialect>/...`` with a streamed answer of that dialect. Every event is an HTTP chunk
of its own, as from a provider. What comes of it, by pace:

``fast``   4,000 deltas, as fast as they are read
``short``  one delta
``paced``  50 deltas, 20 ms apart
``answer`` 16,000 characters of Markdown in deltas of 32, 2 ms apart
``held``   one delta, then nothing more until the client is gone
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DELTAS = 4_000
PACED = 50
PERIOD = 0.02
LENGTH = 16_000
SIZE = 32
PIECE = "tide "


def stream(dialect: str, deltas: int) -> list[bytes]:
    """A streamed answer of so many deltas, one entry an event; 0 deltas: the answer of the pace of that name."""
    from output_budget import answer
    from output_budget import deltas as cut

    from mmsp_nb.testing import encode, parts, streams

    pieces = [PIECE] * deltas if deltas else list(cut(answer(LENGTH, "mixed"), SIZE))
    return encode(streams.DIALECTS[dialect].frames([parts.text(*pieces)]))


class Server:
    """Answers as the head of this module says. The streams are made once."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, int], list[bytes]] = {}

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=512)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)  # its end is the end of whoever started this

    def _chunks(self, dialect: str, deltas: int) -> list[bytes]:
        key = (dialect, deltas)
        if key not in self._streams:
            self._streams[key] = [b"%x\r\n%b\r\n" % (len(event), event) for event in stream(dialect, deltas)]
        return self._streams[key]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if length := re.search(r"content-length: (\d+)", head, re.IGNORECASE):
            await reader.readexactly(int(length[1]))
        _, pace, dialect, *_ = head.split(" ")[1].split("/")
        keep = not re.search(r"connection: close", head, re.IGNORECASE)
        chunks = self._chunks(dialect, {"fast": DELTAS, "paced": PACED, "answer": 0}.get(pace, 1))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
            b"Connection: %b\r\n\r\n" % (b"keep-alive" if keep else b"close")
        )
        if pace in ("paced", "answer"):
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(PERIOD if pace == "paced" else PERIOD / 10)
        elif pace == "held":
            first = next(at for at, chunk in enumerate(chunks) if PIECE.encode() in chunk)
            writer.write(b"".join(chunks[: first + 1]))
            await reader.read()
            return False
        else:
            for at in range(0, len(chunks), 64):
                writer.write(b"".join(chunks[at : at + 64]))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return keep


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The server, started; its address ``http://127.0.0.1:<port>``."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.stdin.close()
        process.wait(10)


if __name__ == "__main__":
    asyncio.run(Server().serve())
