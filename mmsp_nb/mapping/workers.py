"""Requests made elsewhere: in threads, processes or on other machines, by any `concurrent.futures` executor.

One task is one request: its messages and config go there, the answer comes back. Everything else stays here: limits,
retries, tools, types and files. No key is ever sent to a worker; it finds its own in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pickle
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import Any

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.assembly import concat_uni_events_to_uni_message
from mmsp_nb.protocol.copying import copy_message, copy_messages
from mmsp_nb.protocol.errors import ApiKeyRequiredError, MMSPError
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.transport.wire import public_url

__all__ = ["Remote", "Spec", "request"]


@dataclass(frozen=True, slots=True)
class Spec:
    """Which client a worker makes. It holds no key, so it may go anywhere."""

    model: str
    client_type: str | None
    base_url: str | None

    @classmethod
    def of(cls, executor: Any, client: Any, model: str | None, options: Mapping[str, Any]) -> Spec:
        """The spec of a client, or of what one is made of.

        Raises TypeError, in one line, for what cannot be sent to a worker.
        """
        if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
            hint = "; Dask has one: client.get_executor()" if hasattr(executor, "get_executor") else ""
            raise TypeError(f"executor must be a concurrent.futures executor, not {type(executor).__name__}{hint}")
        for name in ("api_key", "transport", "default_headers"):
            if options.get(name) is not None:
                where = "set the vendor's variable where they are started" if name == "api_key" else "leave it out"
                raise TypeError(f"{name} is not sent to the workers of an executor: {where}")
        if client is not None:
            if not hasattr(client, "vendor"):
                raise TypeError(f"with an executor client must be an AutoLLMClient, not {type(client).__name__}")
            model, options = client.model, {"client_type": client.client_type, "base_url": client.base_url}
        elif model is None:
            from mmsp_nb import choosing

            choice = choosing.choose()
            model, options = choice.model, {"client_type": choice.client_type, **options}
        assert model is not None
        from mmsp_nb import local

        base_url = None if local.is_local(model) else options.get("base_url")
        if base_url is not None and public_url(base_url) != base_url:
            raise TypeError("base_url holds a password or a key, which is not sent to the workers of an executor")
        return cls(model, options.get("client_type"), base_url)


class Remote:
    """The client of one row whose requests are made by an executor.

    Args:
        client: One of the same model in this process, for what is to be known of it.
        spec: What workers make theirs of.
        executor: Who runs `request`.
        workers: Counts the answers of each worker.
    """

    def __init__(self, client: Any, spec: Spec, executor: Any, workers: Counter[str]) -> None:
        self._client = client
        self._spec = spec
        self._executor = executor
        self._workers = workers
        self._history: list[UniMessage] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._client, name)

    def get_history(self) -> list[UniMessage]:
        return copy_messages(self._history)

    def set_history(self, history: list[UniMessage]) -> None:
        self._history = copy_messages(history)

    async def streaming_response_stateful(
        self, message: UniMessage, config: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Any, None]:
        """The complete items and the stop of an answer; it is recorded with its question then."""
        try:
            task = self._executor.submit(request, self._spec, [*self._history, message], dict(config or {}))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise MMSPError(f"the request cannot be sent to a worker: {error}") from error
        except RuntimeError as error:  # it was shut down, or its workers are gone: so it is for every row
            raise BrokenExecutor(f"the executor takes no requests ({error}): give map() or retry() another") from error
        try:
            events, worker = await asyncio.wrap_future(task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        self._workers[worker] += 1
        self._history += [copy_message(message), concat_uni_events_to_uni_message(events)]
        for event in events:
            yield event


def request(spec: Spec, messages: list[UniMessage], config: dict[str, Any]) -> tuple[list[Any], str]:
    """What a worker runs: one request. Its events with complete items, its stop, and who made it.

    Raises only what can be sent back, and nothing that holds a key.
    """
    from mmsp_nb import loop

    signal = AbortSignal()
    job = loop.submit(_asked(spec, messages, config, signal))
    try:
        events = job.result()
    except MMSPError as error:
        error.__cause__ = error.__context__ = None  # it may be of a class that only this process knows
        raise
    except Exception as error:
        raise MMSPError(f"{type(error).__name__}: {error}") from None
    except BaseException:
        signal.abort("the worker was stopped")
        raise
    return events, f"{socket.gethostname()}:{os.getpid()}"


async def _asked(spec: Spec, messages: list[UniMessage], config: dict[str, Any], signal: AbortSignal) -> list[Any]:
    stream = _client(spec).streaming_response(messages, config, signal)
    async with contextlib.aclosing(stream) as events:
        return [event async for event in events if counts(event)]


def counts(event: Mapping[str, Any]) -> bool:
    """Whether an event says something complete: the stop, or a done item."""
    return event["event_type"] == "stop" or any(item["type"].endswith(".done") for item in event["content_items"])


def _client(spec: Spec) -> Any:
    """The client of this process for ``spec``; a new one when the environment's keys or addresses change."""
    names = [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN")) or name == "CLIENT_TYPE"]
    return _made(spec, hash(tuple((name, os.environ[name]) for name in sorted(names))))


@functools.lru_cache(maxsize=8)
def _made(spec: Spec, environment: int) -> Any:
    from mmsp_nb.client import AutoLLMClient
    from mmsp_nb.providers.vendors import VENDORS
    from mmsp_nb.transport.http import Transport

    base_url = spec.base_url
    vendor = VENDORS.get(spec.client_type or "")
    if vendor is not None and base_url is not None:
        # an address that the environment itself names is trusted with the environment's key
        named = os.environ.get(vendor.base_url_env, "").strip().rstrip("/")
        base_url = None if named == base_url.rstrip("/") else base_url
    try:
        return AutoLLMClient(spec.model, None, base_url, spec.client_type, transport=Transport(retries=0))
    except ApiKeyRequiredError as error:
        known = {name: value for name, value in vars(error).items() if name != "message"}
        raise ApiKeyRequiredError(
            f"in the worker {socket.gethostname()}:{os.getpid()}: {error.message}. Keys are not sent to workers: "
            "set it where they are started",
            **known,
        ) from None
