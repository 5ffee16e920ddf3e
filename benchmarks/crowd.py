"""Many streams at once in one process: do they finish together, and what memory does each take?

python benchmarks/crowd.py client|httpx ADDRESS [STREAMS]       prints JSON
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from streaming import MESSAGE, base_url

STREAMS = 200


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def run(kind: str, address: str, streams: int) -> dict[str, float]:
    if kind == "client":
        from mmsp_nb import AutoLLMClient

        def events(pace: str) -> Any:
            client = AutoLLMClient("a-model", "k-benchmark", base_url(address, pace, "chat"), "openai-chat")
            return client.streaming_response([dict(MESSAGE)], {})  # type: ignore[list-item]

    else:

        async def events(pace: str) -> Any:
            url = base_url(address, pace, "chat")
            async with http.stream("POST", url, content=b"{}", headers={"Connection": "close"}) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        yield json.loads(line[6:])

    async with httpx.AsyncClient(timeout=60, trust_env=False, limits=httpx.Limits(max_connections=None)) as http:
        await _read(events("paced"))  # everything is imported and warm
        # first, while no memory of earlier streams is free to be used again
        gc.collect()
        before = resident()
        async with contextlib.AsyncExitStack() as stack:
            held = [await stack.enter_async_context(contextlib.aclosing(events("held"))) for _ in range(streams)]
            await asyncio.gather(*(anext(stream) for stream in held))
            gc.collect()
            memory = resident() - before

        start, cpu = time.perf_counter(), time.process_time()
        ends = await asyncio.gather(*(_read(events("paced")) for _ in range(streams)))
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {
        "spread": (max(ends) - min(ends)) * 1e3,
        "took": took,
        "cpu": cpu / streams * 1e3,
        "memory": memory / streams / 1024,
    }


async def _read(events: Any) -> float:
    async for _ in events:
        pass
    return time.perf_counter()


if __name__ == "__main__":
    which, where, *count = sys.argv[1:]
    print(json.dumps(asyncio.run(run(which, where, int(count[0]) if count else STREAMS))))
