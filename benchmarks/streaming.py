"""CPU time of a streamed event: a client against plain httpx reading the same stream in the same process.

    python benchmarks/streaming.py PACKAGE ADDRESS [ROUNDS]      PACKAGE: mmsp_nb or mmsp

Run by another interpreter it measures the reference package: nothing is imported but httpx, the standard library and
PACKAGE. Prints JSON: for each dialect the median CPU time of an event in microseconds, of both.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import statistics
import sys
import time
from typing import Any

import httpx

DIALECTS = {
    "chat": ("openai-chat", "/v1"),
    "responses": ("openai-official", "/v1"),
    "messages": ("anthropic-official", ""),
    "interactions": ("google-official", ""),
    "generate_content": ("google-genai", ""),
    "mmsp": ("mmsp", "/v1"),
}
"""Dialect -> a client type that speaks it, and the path of its base URL."""

MESSAGE = {"role": "user", "content_items": [{"type": "text.done", "text": "When is high tide?"}]}
DELTAS = 4_000


def base_url(address: str, pace: str, dialect: str) -> str:
    return f"{address}/{pace}/{dialect}{DIALECTS[dialect][1]}"


async def plain(client: httpx.AsyncClient, url: str, content: bytes = b"{}") -> int:
    """What anybody would write: lines, JSON. Returns the number of events."""
    count = 0
    async with client.stream("POST", url, content=content, headers={"Connection": "close"}) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                json.loads(line[6:])
                count += 1
    return count


async def consume(client: Any, message: Any = None) -> int:
    """A whole answer of an AutoLLMClient. Returns the number of its text deltas."""
    count = 0
    async for event in client.streaming_response([message or dict(MESSAGE)], {}):
        if event["event_type"] == "delta" and event["content_items"][0]["type"] == "text.delta":
            count += 1
    return count


async def cpu(work: Any) -> tuple[float, int]:
    """CPU seconds of this process while ``work`` ran, and what it returned."""
    gc.collect()
    start = time.process_time()
    count = await work
    return time.process_time() - start, count


async def compare(make: Any, address: str, rounds: int) -> dict[str, dict[str, float]]:
    found = {}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        for dialect, (client_type, _) in DIALECTS.items():
            base = base_url(address, "fast", dialect)
            client = make("a-model", api_key="k-benchmark", base_url=base, client_type=client_type)
            theirs: list[float] = []
            ours: list[float] = []
            for number in range(rounds + 1):
                spent, events = await cpu(plain(http, base))
                assert events >= DELTAS, f"{dialect}: {events} events"
                spent_too, deltas = await cpu(consume(client))
                assert deltas == DELTAS, f"{dialect}: {deltas} deltas"
                if number:  # the first round only warms up
                    theirs.append(spent / events * 1e6)
                    ours.append(spent_too / events * 1e6)
            found[dialect] = {
                "httpx": statistics.median(theirs),
                "client": statistics.median(ours),
                "ratio": statistics.median(ours) / statistics.median(theirs),
            }
    return found


def main() -> None:
    package, address, *rest = sys.argv[1:]
    home = "mmsp" if package == "mmsp" else f"{package}.client"
    make = importlib.import_module(home).AutoLLMClient
    with contextlib.redirect_stdout(sys.stderr):
        found = asyncio.run(compare(make, address, int(rest[0]) if rest else 5))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
