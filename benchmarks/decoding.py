"""CPU time of an event without sockets: a client handed the bytes, against lines and ``json.loads`` of the same bytes.

    python benchmarks/decoding.py [ROUNDS]       prints JSON: for each dialect, microseconds an event

``lines``: the whole text at once, which is the least that anybody could do. ``client``: chunks of one event each, as
they come from a provider that is slower than we are. ``full``: chunks of sixteen, as from one that is faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import statistics
import sys
import time
from typing import Any

from server import DELTAS, stream
from streaming import DIALECTS, MESSAGE

from mmsp_nb import AutoLLMClient
from mmsp_nb.transport.http import Transport


def lines(data: bytes) -> None:
    for line in data.decode().split("\n"):
        if line.startswith("data: ") and line != "data: [DONE]":
            json.loads(line[6:])


async def answer(dialect: str, pieces: list[bytes]) -> None:
    @contextlib.asynccontextmanager
    async def handler(request: Any) -> Any:
        async def body() -> Any:
            for piece in pieces:
                yield piece

        yield 200, {"content-type": "text/event-stream"}, body()

    client_type, path = DIALECTS[dialect]
    transport = Transport(handler=handler)
    client = AutoLLMClient("a-model", "k", f"http://127.0.0.1:9{path}", client_type, transport=transport)
    async for _ in client.streaming_response([dict(MESSAGE)], {}):  # type: ignore[list-item]
        pass


async def measure(rounds: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for dialect in DIALECTS:
        chunks = stream(dialect, DELTAS)
        sixteen = [b"".join(chunks[at : at + 16]) for at in range(0, len(chunks), 16)]
        whole = b"".join(chunks)
        taken: dict[str, list[float]] = {"lines": [], "client": [], "full": []}
        for number in range(rounds + 1):
            for name, values in taken.items():
                gc.collect()
                start = time.process_time()
                if name == "lines":
                    lines(whole)
                else:
                    await answer(dialect, chunks if name == "client" else sixteen)
                if number:
                    values.append((time.process_time() - start) / len(chunks) * 1e6)
        found[dialect] = {name: statistics.median(values) for name, values in taken.items()}
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 9))))
