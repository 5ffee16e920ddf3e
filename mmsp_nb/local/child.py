"""The process that holds the local model: llama.cpp's server inside, and our front before it.

It is configured by one JSON line on standard input, reports by one JSON line on standard output, and ends when standard
input ends or its parent is gone. Nothing secret is on the command line, and a crash in native code ends only this
process.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from . import wire
from .front import Answer, Exchange, Front
from .service import Service
from .shim import Shim, capped, plain
from .upstream import Upstream
from .wire.neutral import Ask, BadRequest

__all__ = ["LocalMind", "run"]


class LocalMind:
    """Hands plain requests through to llama.cpp as they are, and gives the rest to the shim."""

    owner = "mmsp-nb"
    embeds = False

    def __init__(self, upstream: Upstream, model: str, n_ctx: int, n_predict: int) -> None:
        self.models: Sequence[str] = (model,)
        self.upstream, self.n_ctx, self.n_predict = upstream, n_ctx, n_predict
        self.shim = Shim(upstream, n_predict)

    def answer(self, ask: Ask, target: wire.Target, exchange: Exchange) -> Answer:
        if any(turn.images for turn in ask.turns):
            raise BadRequest("This local model reads text only; leave the images out, or use the model 'demo'.")
        if not plain(ask, target.wire):
            return self.shim.answer(ask, target.wire, exchange)
        paths = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
        body = capped(exchange.body, ask, self.n_ctx, self.n_predict)
        return Answer(self.upstream.relay(paths[target.wire.NAME], body, exchange.connection), raw=True)


def _load(config: Mapping[str, Any], key: str) -> tuple[Any, list[str]]:
    """Start llama.cpp's server; also the names of the settings that this release does not know."""
    # two threads on two busy cores wait for each other in spin loops, which makes them ten times slower
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    wanted = {
        "n_ctx": config["n_ctx"],
        "n_predict": config["n_predict"],
        "n_parallel": 1,
        "port": 0,
        "hostname": "127.0.0.1",  # its name until 2026.9
        "hostnames": ["127.0.0.1"],
        "api_keys": [key],
        "model_alias": {config["model"]},
        "cors_origins": "",
        "ui": False,
        "cache_ram_mib": 0,  # the default of 8 GB would outgrow a small machine
        "endpoint_slots": False,
        "verbosity": 0,
        "n_threads_http": 4,
        "offline": True,
    }
    unknown = []
    for name, value in wanted.items():
        # the attributes follow llama.cpp and change from release to release
        if hasattr(parameters, name):
            setattr(parameters, name, value)
        else:
            unknown.append(name)
    parameters.model.path = config["gguf"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = config["threads"]
    # the model card's sampling, and a repeat penalty: without it the model falls into loops
    parameters.sampling.temp, parameters.sampling.top_p = 0.2, 0.9
    parameters.sampling.penalty_repeat, parameters.sampling.penalty_last_n = 1.1, 256
    server = xllamacpp.Server(parameters)
    if not server.listening_address.startswith("http://127.0.0.1:"):
        raise RuntimeError(f"the server listens on {server.listening_address}, and not on 127.0.0.1 alone")
    one_of_both = {"hostname", "hostnames"}
    return server, [name for name in unknown if name not in one_of_both or one_of_both <= set(unknown)]


def run() -> int:
    """Serve until standard input ends. Returns (or exits with) a status other than 0 when the start failed."""
    config = json.loads(sys.stdin.readline())
    key = secrets.token_urlsafe(24)
    try:
        server, unknown = _load(config, key)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return 1
    host, _, port = server.listening_address.removeprefix("http://").rpartition(":")
    mind = LocalMind(Upstream((host, int(port)), key), config["model"], config["n_ctx"], config["n_predict"])
    front = Front(Service(mind, api_key=config["api_key"], home=home(config["model"])), port=config["port"])
    try:
        front.start()
    except OSError as error:
        print(json.dumps({"error": f"cannot listen on port {config['port']}: {error}"}), flush=True)
        os._exit(1)
    if hasattr(os, "getppid"):
        threading.Thread(target=_watch_parent, args=(config["parent"],), daemon=True).start()
    print(json.dumps({"base_url": front.base_url, "unknown": unknown}), flush=True)
    while sys.stdin.read(4096):
        pass
    os._exit(0)  # without waiting for threads of native code


def _watch_parent(parent: int) -> None:
    """End when the parent is gone, even if some other process still holds the other end of standard input."""
    while os.name != "posix" or os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def home(model: str) -> str:
    """The page at ``/``."""
    return (
        f"The local model of mmsp_nb: {model}, by llama.cpp.\n\n"
        "Chat Completions, Responses and Messages without tools are llama.cpp's own answers.\n"
        "Tools, JSON answers and the Gemini formats are added by mmsp_nb (header x-mmsp-local: shim).\n"
    )
