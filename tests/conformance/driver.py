"""Runs conformance cases against one implementation of the protocol and says what came out, as JSON.

Run as a script with another interpreter (``python driver.py mmsp``) it speaks JSON lines: a case on stdin, its result
on stdout. The test suite imports it and runs the same code on this package. Standard library only, and nothing of the
implementation but its public names.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import importlib
import json
import os
import sys
from typing import Any

ATTRIBUTES = (
    *("client", "client_type", "model", "parameter", "item_type", "message_index", "operation", "missing"),
    *("finish_reason", "usage_metadata", "tool_name", "tool_call_id", "raw_arguments_length"),
    *("raw_arguments_preview", "code", "status", "status_code", "error_type", "error", "event"),
    *("api_key_env", "base_url_env", "base_url"),
)
USAGE = ("cached_tokens", "prompt_tokens", "thoughts_tokens", "response_tokens")
CASE_TIMEOUT = 60.0


class Implementation:
    """The public names of one package."""

    def __init__(self, package: str) -> None:
        if package == "mmsp":
            root = importlib.import_module("mmsp")
            self.client, self.normalize = root.AutoLLMClient, root.normalize_legacy_messages
            self.base_error, self.signal = root.MMSPError, importlib.import_module("mmsp.abort_signal").AbortSignal
        else:
            self.client = importlib.import_module(f"{package}.client").AutoLLMClient
            self.normalize = importlib.import_module(f"{package}.protocol.history").normalize_legacy_messages
            self.base_error = importlib.import_module(f"{package}.protocol.errors").MMSPError
            self.signal = importlib.import_module(f"{package}.protocol.abort").AbortSignal


async def run_case(case: dict[str, Any], implementation: Implementation) -> dict[str, Any]:
    """The result of one case: what construction, each step and the history gave."""
    saved = dict(os.environ)
    os.environ.update(case.get("env", {}))
    try:
        return await asyncio.wait_for(_run(case, implementation), CASE_TIMEOUT)
    finally:
        for name in os.environ.keys() - saved.keys():
            del os.environ[name]
        os.environ.update(saved)


async def _run(case: dict[str, Any], implementation: Implementation) -> dict[str, Any]:
    try:
        client = implementation.client(**case["client"])
    except Exception as error:
        return {"construction": describe(error, implementation)}
    steps = [await _step(client, from_json(step), implementation) for step in case["steps"]]
    result: dict[str, Any] = {"steps": steps}
    history = client.get_history()
    if history:
        result["history"] = [_unmarked(_unstamped(message)) for message in history]
    return to_json(result)


async def _step(client: Any, step: dict[str, Any], implementation: Implementation) -> dict[str, Any]:
    do, config = step["do"], step.get("config", {})
    result: dict[str, Any] = {}
    try:
        if do in ("stream", "turn"):
            await _stream(client, step, do, config, result, implementation)
        elif do == "models":
            result["value"] = await client.list_models()
        elif do == "set_history":
            client.set_history(step["messages"])
        elif do == "clear_history":
            client.clear_history()
        elif do == "normalize":
            result["value"] = implementation.normalize(step["messages"])
        else:
            raise AssertionError(f"unknown step {do!r}")
    except (Exception, asyncio.CancelledError) as error:
        result["error"] = describe(error, implementation)
    return result


async def _stream(
    client: Any, step: dict[str, Any], do: str, config: Any, result: dict[str, Any], implementation: Implementation
) -> None:
    given = step["messages"] if do == "stream" else [step["message"]]
    before = copy.deepcopy(given)
    signal = implementation.signal() if "abort_at" in step else None
    if step.get("abort_at") == 0:
        signal.abort(step.get("reason"))
    if do == "stream":
        events = client.streaming_response(given, config, signal)
    else:
        events = client.streaming_response_stateful(given[0], config, signal)
    result["events"] = []
    received = []
    try:
        async for event in events:
            received.append(event)
            result["events"].append(_checked(event))
            if len(received) == step.get("abort_at"):
                signal.abort(step.get("reason"))
            if len(received) == step.get("leave_at"):
                break
    finally:
        await events.aclose()
        stamped = [isinstance(message.get("created_at"), int) for message in given]
        if not all(stamped):
            result["stamped"] = stamped
        if [_unstamped(message) for message in given] != [_unstamped(message) for message in before]:
            result["input_changed"] = True
    if step.get("concat"):
        result["message"] = _unstamped(client.concat_uni_events_to_uni_message(received))


def _checked(event: dict[str, Any]) -> dict[str, Any]:
    """A copy of an event without its time, in short when it has the form that the protocol demands.

    A delta event becomes its one item, a stop event its finish reason and usage. What has another form, or a time
    that is none in milliseconds, stays to be seen.
    """
    copied = copy.deepcopy(dict(event))
    stamp = copied.pop("created_at", "missing")
    if not (isinstance(stamp, int) and stamp > 1_500_000_000_000):
        copied["created_at"] = stamp
    items, usage, finish = (copied.get(key) for key in ("content_items", "usage_metadata", "finish_reason"))
    delta = {"role": "assistant", "event_type": "delta", "usage_metadata": None, "finish_reason": None}
    if copied == {**delta, "content_items": items} and isinstance(items, list) and len(items) == 1:
        return dict(items[0])
    stop = {"role": "assistant", "event_type": "stop", "content_items": []}
    counted = isinstance(usage, dict) and usage.keys() == set(USAGE)
    if counted and copied == {**stop, "usage_metadata": usage, "finish_reason": finish}:
        return {"stop": finish, "usage": [usage[key] for key in USAGE]}
    return copied


def _unstamped(message: dict[str, Any]) -> dict[str, Any]:
    copied = dict(message)
    stamp = copied.pop("created_at", None)
    if stamp is not None and not isinstance(stamp, int):
        copied["created_at"] = stamp
    return copied


def _unmarked(message: dict[str, Any]) -> dict[str, Any]:
    """Without the bookkeeping that is ours alone: who wrote the message. It is never sent."""
    return {key: value for key, value in message.items() if key != "origin"}


def describe(error: BaseException, implementation: Implementation) -> dict[str, Any]:
    """An error as JSON: its class, whether it is one of the protocol's, and the contract's attributes."""
    own = isinstance(error, implementation.base_error)
    described: dict[str, Any] = {"class": type(error).__name__, "own": own}
    if isinstance(error, asyncio.CancelledError):
        described["class"] = "CancelledError"
        described["args"] = list(error.args)
    for name in ATTRIBUTES:
        value = getattr(error, name, None)
        if value is not None and isinstance(value, (str, int, float, bool, list, tuple, dict)):
            described[name] = value
    return to_json(described)


def to_json(value: Any) -> Any:
    """Plain JSON values; bytes become ``{"$bytes": base64}``, enumeration members their values."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, str):
        return str(getattr(value, "value", value))
    return value


def from_json(value: Any) -> Any:
    """The reverse of `to_json` for bytes."""
    if isinstance(value, dict):
        if value.keys() == {"$bytes"}:
            return base64.b64decode(value["$bytes"])
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value


async def _main(package: str) -> None:
    implementation = Implementation(package)
    # results go to the real stdout, whatever the package may print
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            result = await run_case(json.loads(line), implementation)
        except Exception as error:
            result = {"driver": f"{type(error).__name__}: {error}"}
        output.write(json.dumps(result, ensure_ascii=False) + "\n")
        output.flush()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
