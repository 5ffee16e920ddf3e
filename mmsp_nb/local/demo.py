"""A model without a key: deterministic rules behind the real wire formats, on a loopback port.

It calls the tools it is given, remembers the conversation, thinks when asked to, answers in JSON when asked to,
and fails on order (``demo: help`` lists how). Every answer says that it is a demo.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from . import wire
from .front import Answer, Cut, Exchange, Front
from .rules import Reply, faults, reply
from .service import Service, refuse
from .wire.neutral import Ask, BadRequest
from .wire.pieces import deltas, dumps

__all__ = ["MODELS", "DemoMind", "DemoServer"]

MODELS = ("demo", "demo:thinking", "demo:embedding")
"""The ids that the demo lists. Any other id is answered as well, and repeated in the answer."""

_HANG = 600.0


class DemoMind:
    """Answers an `Ask` by `rules.reply`, with a pause of ``delay`` seconds before each piece of a stream."""

    models: Sequence[str] = MODELS
    owner = "mmsp-nb"
    embeds = True

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self._refused: dict[str, int] = {}
        self._lock = threading.Lock()

    def answer(self, ask: Ask, target: wire.Target, exchange: Exchange) -> Answer:
        said = reply(ask)
        fault = said.fault
        if fault and fault.kind == "fail" and self._refuses(ask, fault):
            headers = {"retry-after": "1"} if fault.status in (408, 429, 503, 529) else {}
            return refuse(target.wire, BadRequest(faults.message(fault.status), fault.status), headers)
        if fault and fault.kind == "html":
            page = b"<!doctype html><html><head><title>Sign in</title></head><body>Please sign in.</body></html>"
            return Answer(page, 200, {"Content-Type": "text/html; charset=utf-8"})
        if not ask.stream:
            if fault and fault.kind in ("error", "cut", "hang", "broken json"):
                status = fault.status or 500
                return refuse(target.wire, BadRequest(faults.message(status), status))
            return Answer.json(target.wire.document(ask, list(said.says), said.finish, said.usage))
        return Answer.events(self._stream(ask, said, target.wire, exchange))

    def _refuses(self, ask: Ask, fault: faults.Fault) -> bool:
        """Whether it is still the turn of a failure that comes only once or twice."""
        if not fault.times:
            return True
        with self._lock:
            done = self._refused.get(ask.digest, 0)
            if done < fault.times:
                self._refused[ask.digest] = done + 1
                return True
            del self._refused[ask.digest]
            return False

    def _stream(self, ask: Ask, said: Reply, spoken: wire.Wire, exchange: Exchange) -> Iterator[bytes]:
        fault = said.fault
        kind = fault.kind if fault else ""
        usage = None if kind == "no usage" else said.usage
        delay = fault.seconds if fault and kind == "slow" else self.delay
        encoder = spoken.encoder(ask, usage)
        yield from encoder.start()
        pieces = list(deltas(said.says))
        half = len(pieces) // 2 if kind in ("error", "cut", "hang", "broken json") else len(pieces)
        for piece in pieces[:half]:
            exchange.wait(delay)
            yield from encoder.push(piece)
        if kind == "error" and fault:
            yield from encoder.fail(fault.status, faults.message(fault.status))
        elif kind == "cut":
            raise Cut
        elif kind == "hang":
            exchange.wait(_HANG)
        elif kind == "broken json":
            yield b"data: " + dumps({"type": "broken", "choices": []})[:-4].encode() + b"\n\n"
        elif kind != "no finish":
            yield from encoder.finish(said.finish, usage)


class DemoServer:
    """The demo model on 127.0.0.1, in a thread of this process.

    ``delay`` is the pause in seconds before each streamed piece, ``port`` 0 a free port, ``api_key`` the key that
    callers must send (None: any or none). `start` returns the server itself; `close` ends it.

    ::

        with DemoServer() as demo:
            demo.base_url          # "http://127.0.0.1:40123": append /v1/chat/completions, /v1/messages, ...
    """

    def __init__(self, delay: float = 0.0, *, port: int = 0, api_key: str | None = None) -> None:
        self.mind = DemoMind(delay)
        self.api_key = api_key
        self._front = Front(Service(self.mind, api_key=api_key, home=home()), port=port, name="mmsp-demo")

    @property
    def base_url(self) -> str:
        """The root URL, without ``/v1``. Raises RuntimeError when the server is not running."""
        return self._front.base_url

    def start(self) -> DemoServer:
        """Begin to serve; a second call changes nothing. Raises OSError when the port is taken."""
        self._front.start()
        return self

    def close(self) -> None:
        """End the server and its connections."""
        self._front.close()

    def abandon(self) -> None:
        """Let go of the sockets in a forked child."""
        self._front.abandon()

    def __enter__(self) -> DemoServer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()


def home() -> str:
    """The page at ``/``."""
    lines = [f"  /v1{path:35} {what}" for path, what in wire.ENDPOINTS.items()]
    orders = [f"  demo: {command:18} {effect}" for command, effect in faults.COMMANDS.items()]
    head = "The demo model of mmsp_nb: rules instead of a language model, behind real wire formats."
    return "\n".join([head, "", "Endpoints:", *lines, "", "Prompts that fail on purpose:", *orders, ""])
