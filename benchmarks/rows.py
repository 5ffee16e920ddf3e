"""Many rows in one process: CPU a row, and what the result of all of them holds.

python benchmarks/rows.py map|httpx ADDRESS [ROWS]       prints JSON
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time

import httpx
from crowd import resident
from streaming import base_url

ROWS = 10_000
WIDTH = 32


def prompts(rows: int) -> list[str]:
    """So many rows, of a few words each."""
    return [f"Row {number}: where is the tide high today, and when?" for number in range(rows)]


def ours(address: str, rows: list[str]) -> object:
    import mmsp_nb

    client = mmsp_nb.AutoLLMClient("a-model", "k-benchmark", base_url(address, "short", "chat"), "openai-chat")
    return mmsp_nb.map(rows, "{{row}}", client=client, concurrency=WIDTH, resume=False)


async def plain(address: str, rows: list[str]) -> list[str]:
    """The same requests by httpx alone, `WIDTH` at once, the texts gathered."""
    url = base_url(address, "short", "chat") + "/chat/completions"
    room = asyncio.Semaphore(WIDTH)

    async def one(row: str) -> str:
        body = {"model": "a-model", "messages": [{"role": "user", "content": row}], "stream": True}
        said = ""
        async with room, http.stream("POST", url, json=body, headers={"Connection": "close"}) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        said += choice["delta"].get("content") or ""
        return said

    async with httpx.AsyncClient(timeout=60, trust_env=False, limits=httpx.Limits(max_connections=None)) as http:
        return list(await asyncio.gather(*(one(row) for row in rows)))


def run(kind: str, address: str, rows: int) -> dict[str, float]:
    def ask(number: int) -> object:
        given = prompts(number)
        return ours(address, given) if kind == "map" else asyncio.run(plain(address, given))

    ask(50)  # everything is imported and warm
    gc.collect()
    before, cpu, start = resident(), time.process_time(), time.perf_counter()
    result = ask(rows)
    cpu, took = time.process_time() - cpu, time.perf_counter() - start
    gc.collect()
    memory = resident() - before
    assert len(result) == rows  # type: ignore[arg-type]
    return {"cpu": cpu / rows * 1e3, "took": took / rows * 1e3, "memory": memory / rows / 1024}


if __name__ == "__main__":
    which, where, *count = sys.argv[1:]
    print(json.dumps(run(which, where, int(count[0]) if count else ROWS)))
