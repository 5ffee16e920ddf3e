"""What a request costs: long histories against posting the same bytes, and the way to the first delta.

python benchmarks/requesting.py ADDRESS [ROUNDS]       prints JSON
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
from typing import Any

import httpx
from streaming import DIALECTS, base_url, plain

from mmsp_nb import AutoLLMClient
from mmsp_nb.providers.body import encode

TURNS = (400, 2_000)


def history(turns: int) -> list[Any]:
    """A talk of so many turns; every fourth one calls a tool."""
    messages: list[Any] = []
    for number in range(turns):
        messages.append(_said("user", f"Turn {number}: when is high tide in Brest, and how high does it get there?"))
        call = {"name": "tide_table", "arguments": {"port": "Brest", "days": 1}, "tool_call_id": f"call_{number}"}
        if number % 4 == 0 and number + 1 < turns:
            messages.append({"role": "assistant", "content_items": [{"type": "tool_call.done", **call}]})
            result = {"type": "tool_result.done", "text": "06:12 6.4 m\n18:40 6.1 m", "tool_call_id": f"call_{number}"}
            messages.append({"role": "user", "content_items": [result]})
        messages.append(_said("assistant", "High water is at 06:12 and at 18:40, and it rises to **6.4 m**. " * 3))
    return messages


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content_items": [{"type": "text.done", "text": text}]}


async def long_history(
    http: httpx.AsyncClient, address: str, dialect: str, turns: int, rounds: int
) -> dict[str, float]:
    """CPU ms of one more turn of a conversation, of the same list sent whole, and of posting the same bytes."""
    base = base_url(address, "short", dialect)
    client = AutoLLMClient("a-model", "k-benchmark", base, DIALECTS[dialect][0])
    client.set_history(history(turns))
    config: Any = {"max_tokens": 500}
    ours: list[float] = []
    theirs: list[float] = []
    whole: list[float] = []
    for number in range(rounds + 1):
        client_history = client.get_history()
        question: Any = _said("user", "And tomorrow?")
        gc.collect()
        start = time.process_time()
        async for _ in client.streaming_response_stateful(question, config):
            pass
        middle = time.process_time()
        [request] = await client._endpoint.requests([*client_history, question], config, None)
        body = json.loads(encode(request.body))
        gc.collect()
        again = time.process_time()
        async for _ in client.streaming_response([*client_history, question], config):
            pass
        gap = time.process_time() - again
        gc.collect()
        again = time.process_time()
        await plain(http, base, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
        if number:  # the first call also checks the history that was set
            ours.append((middle - start) * 1e3)
            theirs.append((time.process_time() - again) * 1e3)
            whole.append(gap * 1e3)
    return {"client": statistics.median(ours), "whole": statistics.median(whole), "httpx": statistics.median(theirs)}


async def first_delta(http: httpx.AsyncClient, address: str, dialect: str, rounds: int) -> dict[str, float]:
    """Milliseconds until the first delta is in the consumer's hands, and until the first ``data:`` line of text is."""
    base = base_url(address, "held", dialect)
    client = AutoLLMClient("a-model", "k-benchmark", base, DIALECTS[dialect][0])

    async def ours() -> None:
        events = client.streaming_response([_said("user", "When is high tide?")], {})  # type: ignore[list-item]
        await anext(events)
        taken.append((time.perf_counter() - wall) * 1e3)
        burnt.append((time.process_time() - cpu) * 1e3)
        await events.aclose()

    async def theirs() -> None:
        async with http.stream("POST", base, content=b"{}", headers={"Connection": "close"}) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and "tide " in json.dumps(json.loads(line[6:])):
                    taken.append((time.perf_counter() - wall) * 1e3)
                    burnt.append((time.process_time() - cpu) * 1e3)
                    break

    found: dict[str, float] = {}
    lists: dict[str, tuple[list[float], list[float]]] = {"client": ([], []), "httpx": ([], [])}
    for _ in range(rounds):
        for name, work in (("client", ours), ("httpx", theirs)):
            taken, burnt = lists[name]
            wall, cpu = time.perf_counter(), time.process_time()
            await work()
    for name, (taken, burnt) in lists.items():
        # others use the machine too, and what they take comes on top of what is waited for: the fastest tenth
        found[name], found[f"{name} cpu"] = statistics.quantiles(taken[3:], n=10)[0], statistics.median(burnt[3:])
    return found


async def measure(address: str, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {"history": {}, "first": {}}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        for dialect in DIALECTS:
            found["first"][dialect] = await first_delta(http, address, dialect, rounds * 5)
            found["history"][dialect] = {
                turns: await long_history(http, address, dialect, turns, rounds) for turns in TURNS
            }
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9))))
