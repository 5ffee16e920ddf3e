"""Models without a key: ``demo`` (rules, in this process) and ``local`` (a small real model, in a child process).

Both are HTTP servers on 127.0.0.1 that speak the vendors' wire formats, so that everything else in the package treats
them like any provider. Importing this package is cheap; servers start on first use and end with the process.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmsp_nb.testing import FakeProvider

    from .demo import DemoServer
    from .errors import LocalModelError
    from .llama import LocalModel

__all__ = [
    "Choice",
    "DemoServer",
    "Endpoint",
    "LocalModel",
    "LocalModelError",
    "available",
    "choose",
    "endpoint",
    "is_local",
    "shutdown",
]

_LAZY = {"DemoServer": "demo", "LocalModel": "llama", "LocalModelError": "errors"}

VENDOR_DEFAULTS: dict[str, tuple[str, str]] = {
    "OPENAI_API_KEY": ("gpt-5.5", "openai-official"),
    "ANTHROPIC_API_KEY": ("claude-opus-5-5", "anthropic-official"),
    "GEMINI_API_KEY": ("gemini-3.8-flash", "google-official"),
    "DEEPSEEK_API_KEY": ("deepseek-flash", "deepseek-official"),
    "ZAI_API_KEY": ("glm-5.3", "zai-official"),
    "MOONSHOT_API_KEY": ("kimi-k3", "moonshot-official"),
    "MINIMAX_API_KEY": ("MiniMax-M3", "minimax-official"),
}
"""For each key variable, in the order in which they are looked for: the model and the client type it stands for."""

DEFAULT_CLIENT_TYPE = "openai-chat"
"""The client type of the local models when none is named."""

_ROOTED = frozenset(
    {
        "anthropic-official",
        "ant-messages",
        "google-official",
        "google-genai",
        "gemini-official",
        "gemini-generate-content",
    }
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a local model is reached. ``base_url`` has the suffix that the client type expects."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What to use when nothing was chosen. ``client_type`` None leaves it to the model id; ``why`` is one sentence."""

    model: str
    client_type: str | None
    why: str


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Running:
    """The servers of this process. A forked child starts with none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.demo: DemoServer | None = None
        self.local: LocalModel | None = None
        self.fake: FakeProvider | None = None

    def forked(self) -> None:
        """In a forked child: let go of what belongs to the parent."""
        self.lock = threading.Lock()
        for server in (self.demo, self.local):
            if server is not None:
                server.abandon()
        self.demo = self.local = self.fake = None


_running = _Running()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.forked)


def is_local(model: str) -> bool:
    """Whether a model id means a model of this package: ``demo``, ``demo:...``, ``local`` or ``fake:...``."""
    return model in ("demo", "local") or model.startswith(("demo:", "fake:"))


def endpoint(model: str, client_type: str | None = DEFAULT_CLIENT_TYPE) -> Endpoint:
    """Where ``model`` (``demo``, ``demo:...``, ``local``, ``fake:...``) is served; starts its server on first use.

    ``client_type`` says in which wire format it will be asked.
    There is one server of each kind in a process; calling this again, from any thread, finds it. A local model whose
    process has died is started anew. Raises LocalModelError when the local model cannot be used, ValueError for an id
    of any other model.
    """
    if not is_local(model):
        raise ValueError(f"{model!r} is no local model: use 'demo' or 'local'")
    suffix = "" if (client_type or DEFAULT_CLIENT_TYPE).lower() in _ROOTED else "/v1"
    from mmsp_nb.interrupts import blocking

    with blocking(), _running.lock:
        if model == "local":
            server = _start_local()
            return Endpoint(server.base_url + suffix, server.api_key, server.model)
        if model.startswith("fake:"):
            return Endpoint(_start_fake(model) + suffix, "fake", model)
        if _running.demo is None:
            from .demo import DemoServer

            _running.demo = DemoServer(_delay(os.environ)).start()
        return Endpoint(_running.demo.base_url + suffix, "demo", model)


def _start_local() -> LocalModel:
    running = _running.local
    if running is None or not running.alive:
        from .llama import LocalModel

        if running is not None:
            running.close()
        _running.local = None
        _running.local = LocalModel().start()
    return _running.local  # type: ignore[return-value]


def _start_fake(model: str) -> str:
    from mmsp_nb.protocol.errors import RoutingError
    from mmsp_nb.testing import FakeProvider, faults

    try:
        faults.check(model)
    except ValueError as error:
        raise RoutingError(str(error), model=model) from None
    if _running.fake is None:
        _running.fake = FakeProvider().when(lambda request: True, faults.answer).start()
    return _running.fake.url()


def _delay(environ: Mapping[str, str]) -> float:
    try:
        return max(float(environ.get("MMSP_DEMO_DELAY") or 0), 0.0)
    except ValueError:
        return 0.0


def available() -> dict[str, str]:
    """What could be used here without a key: ``{"demo": "...", "local": "..."}``, each with a short remark.

    Nothing is started or downloaded. An entry that is missing cannot be used; `status` of the command line says why.
    """
    found = {"demo": "rules instead of a model, always there"}
    if _local_ready():
        from .weights import find

        found["local"] = f"a small real model: {find()}"
    return found


def _local_ready() -> bool:
    if importlib.util.find_spec("xllamacpp") is None:
        return False
    from .weights import find

    return find() is not None


def choose(environ: Mapping[str, str] | None = None) -> Choice:
    """The model to use when the user named none.

    ``MMSP_MODEL`` decides; else the first vendor whose key is in the environment; else the local model if its runtime
    and its weights are here; else the demo. Empty variables count as unset.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("CLIENT_TYPE", "").strip() or None
    if model := environ.get("MMSP_MODEL", "").strip():
        kind = named or (DEFAULT_CLIENT_TYPE if is_local(model) else None)
        return Choice(model, kind, "MMSP_MODEL is set")
    for variable, (model, client_type) in VENDOR_DEFAULTS.items():
        if environ.get(variable, "").strip():
            return Choice(model, client_type, f"{variable} is set")
    if _local_ready():
        return Choice("local", DEFAULT_CLIENT_TYPE, "no key is set, and the local model is installed")
    return Choice("demo", DEFAULT_CLIENT_TYPE, "no key is set, and no local model is installed")


def shutdown() -> None:
    """End the servers of this process; the next `endpoint` starts them again. Also called at exit."""
    with _running.lock:
        servers = _running.demo, _running.local, _running.fake
        _running.demo = _running.local = _running.fake = None
    for server in servers:
        if server is not None:
            server.close()


atexit.register(shutdown)
