"""Recordings of real exchanges: piece by piece, with their rhythm, without keys; and their replay.

::

    chat = Conversation(cassette="tides.jsonl")                      # recorded the first time, replayed ever after
    with Cassette("tides.jsonl", "none").everywhere(): ...           # all clients of this process
    Transport(handler=replay("tides.jsonl"))                         # one transport

A `Cassette` stands where the network would be, so it serves every provider, tools and several turns, images and
model lists. An exchange is written when it ends, in one go: exchanges at the same time do not mix, and no part of a
key escapes because it came in pieces. What the file looks like is in `mmsp_nb.transport.tape`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx

from mmsp_nb.protocol.errors import CassetteMissError, TransportError
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.transport import tape as tapes
from mmsp_nb.transport.clients import httpx_handler
from mmsp_nb.transport.failures import REQUEST_ID_HEADERS
from mmsp_nb.transport.redaction import Redactor
from mmsp_nb.transport.tape import Exchange, Tape, described, differences, identity
from mmsp_nb.transport.wire import KEYLESS, Handler, Reply, Timeouts, WireRequest

__all__ = ["MODES", "Cassette", "current", "open_cassette", "record", "replay", "through", "use"]

MODES = {
    "none": "only what is recorded; anything else is an error",
    "once": "record everything if the file is not there, else as none",
    "new": "replay what is recorded, record what is not",
    "all": "record everything anew; the file is replaced",
}

_KEPT_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry", *REQUEST_ID_HEADERS})
_TOKEN = b'{"access_token": "replayed", "expires_in": 3600}'
_SHOWN_DIFFERENCES = 3


class Cassette:
    """A recording, and what is done with it. It is a `Handler`: give it to a `Transport`, or to a `Conversation`.

    Requests are told apart by method, path and body. Those recorded several times are answered in the order of the
    recording, and after the last one from the first on, so that a notebook can be run again.

    Args:
        path: the file. Its folder is made when something is recorded.
        mode: one of `MODES`; default is ``MMSP_CASSETTE_MODE``, else ``once``.
        speed: 1.0 replays with the recorded rhythm, 2.0 twice as fast; None (default) does not wait at all.
        handler: who answers what is recorded; default is the network.

    Raises:
        FileNotFoundError: there is nothing to replay.
        ValueError: the file is no recording, or is damaged; or there is no such mode.
    """

    def __init__(
        self, path: str | Path, mode: str | None = None, *, speed: float | None = None, handler: Handler | None = None
    ) -> None:
        mode = mode or os.environ.get("MMSP_CASSETTE_MODE", "").strip().lower() or "once"
        if mode not in MODES:
            raise ValueError(f"there is no cassette mode {mode!r}{did_you_mean(mode, MODES)}: {', '.join(MODES)}")
        if speed is not None and not speed > 0:
            raise ValueError(f"the speed of a replay must be above 0, not {speed!r}")
        self.path, self.mode, self.speed = Path(path), mode, speed
        self.recorded = 0
        """Exchanges written so far."""
        self._inner = handler
        self._lock = threading.Lock()
        exists = self.path.exists()
        if mode == "none" and not exists:
            raise FileNotFoundError(f"there is no recording {str(path)!r}: make one with %mmsp record {path}")
        self._tape = tapes.read(self.path) if exists and mode != "all" else Tape()
        self._begun = exists and mode != "all"
        self._used: Counter[int] = Counter()
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, exchange in enumerate(self._tape.exchanges):
            self._places[identity(exchange.request)].append(number)
        self._answering = len(self._tape.exchanges)  # so many of them answer; later ones were recorded meanwhile
        self.replays = mode == "none" or (mode in ("once", "new") and exists)
        """Whether requests are answered from the file. Then no client needs a key."""
        self.records = mode in ("new", "all") or (mode == "once" and not exists)
        """Whether requests that are not in the file go out and are recorded."""

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, {self.mode!r})"

    def __len__(self) -> int:
        return len(self._tape.exchanges)

    def __bool__(self) -> bool:
        return True

    @property
    def unused(self) -> list[str]:
        """A line for each recorded exchange that was not asked for."""
        return [str(exchange) for number, exchange in enumerate(self._tape.exchanges) if not self._used[number]]

    @property
    def choice(self) -> tuple[str, str | None] | None:
        """Model and client type that were chosen when this was recorded and nobody named any."""
        return None if self._tape.model is None else (self._tape.model, self._tape.client_type)

    def remember_choice(self, model: str, client_type: str | None) -> None:
        """Note the model that was chosen, to be written at the head of the file. The first one counts."""
        if self.records and self._tape.model is None:
            self._tape.model, self._tape.client_type = model, client_type

    def again(self) -> None:
        """Somebody else begins to use the recording that is being made: what is in it by now answers from now on."""
        if self.mode != "all":
            self._answering = len(self._tape.exchanges)

    @contextmanager
    def everywhere(self) -> Iterator[Cassette]:
        """Use it for every client of this process that has no transport of its own, while the block runs."""
        before = use(self)
        try:
            yield self
        finally:
            use(before)

    def __call__(self, request: WireRequest) -> AbstractAsyncContextManager[Reply]:
        return self.handle(request, _with_key(self._inner or httpx_handler(Timeouts())))

    @asynccontextmanager
    async def handle(self, request: WireRequest, inner: Handler) -> AsyncIterator[Reply]:
        """Answer from the file, or by ``inner`` while recording."""
        if _asks_for_token(request):
            # tokens are secrets, and nobody needs one to replay
            if self.records:
                async with inner(request) as reply:
                    yield reply
            else:
                yield 200, {"content-type": "application/json"}, _once(_TOKEN)
            return
        redactor = Redactor(request)
        entry = described(request, redactor)
        exchange = self._find(entry) if self._answering else None
        if exchange is not None:
            yield exchange.status, exchange.headers, self._play(exchange)
        elif self.records:
            async with inner(request) as reply:
                status, headers, body = reply
                writer = _Writer(entry, status, headers, body, redactor)
                try:
                    yield status, headers, writer.pieces()
                finally:
                    self._write(writer.exchange())
        else:
            raise self._miss(entry)

    def _find(self, entry: dict[str, Any]) -> Exchange | None:
        with self._lock:
            places = [number for number in self._places.get(identity(entry), ()) if number < self._answering]
            if not places:
                return None
            same_url = [n for n in places if self._tape.exchanges[n].request["url"] == entry["url"]]
            places = same_url or places
            number = min(places, key=lambda n: self._used[n])
            self._used[number] += 1
            return self._tape.exchanges[number]

    async def _play(self, exchange: Exchange) -> AsyncIterator[bytes]:
        started = time.monotonic()
        for moment, piece in exchange.pieces:
            if self.speed:
                await asyncio.sleep(max(0.0, started + moment / self.speed - time.monotonic()))
            yield piece
        if exchange.end != "end":
            raise httpx.ReadError("the recording ends here" if exchange.end == "left" else "the connection broke here")

    def _write(self, exchange: Exchange) -> None:
        with self._lock:
            header = None
            if not (self._begun and self.path.exists()):
                chosen = {"model": self._tape.model, "client_type": self._tape.client_type}
                header = {"mmsp_cassette": tapes.VERSION, **{name: value for name, value in chosen.items() if value}}
            try:
                tapes.write_exchange(self.path, exchange, header, at=self._tape.whole)
                self._tape.whole = None
            except OSError as error:  # the answer is whole, and its reader is owed it
                why = error.strerror or type(error).__name__
                warnings.warn(f"{self.path}: this was not recorded: {why}", RuntimeWarning, stacklevel=2)
                return
            self._begun = True
            self.recorded += 1
            number = len(self._tape.exchanges)
            self._tape.exchanges.append(exchange)
            self._places[identity(exchange.request)].append(number)
            self._used[number] = 1

    def _miss(self, entry: dict[str, Any]) -> CassetteMissError:
        """The error for a request without an answer: it names the nearest one that was recorded, and the difference."""
        found: list[tuple[int, int, Exchange, list[str]]] = []
        for number, exchange in enumerate(self._tape.exchanges):
            same_path = identity({**exchange.request, "body": 0}) == identity({**entry, "body": 0})
            if same_path and exchange.request.get("body") is not None:
                differing = list(differences(exchange.request["body"], entry.get("body")))
                found.append((len(differing), number, exchange, differing))
        what = f"{self.path} holds no answer to this request ({tapes.title(entry)})"
        differing = []
        if found:
            _, number, exchange, differing = min(found, key=lambda one: one[:2])
            shown = "; ".join(differing[:_SHOWN_DIFFERENCES])
            more = len(differing) - _SHOWN_DIFFERENCES
            what += f". The nearest is number {number + 1}, with another {shown}" + (f"; {more} more" * (more > 0))
        else:
            what += f", of its {len(self._tape.exchanges)} recorded ones none is for this address"
        return CassetteMissError(
            f"{what}. Record it anew: %mmsp record {self.path}",
            url=entry["url"],
            cassette=str(self.path),
            differences=tuple(differing),
        )


class _Writer:
    """An exchange while it is being recorded."""

    def __init__(
        self,
        entry: dict[str, Any],
        status: int,
        headers: Mapping[str, str],
        body: AsyncIterator[bytes],
        redactor: Redactor,
    ) -> None:
        kept = {name.lower(): redactor.text(value) for name, value in headers.items() if name.lower() in _KEPT_HEADERS}
        self._exchange = Exchange(entry, status, kept)
        self._body, self._redactor, self._started = body, redactor, time.monotonic()

    async def pieces(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        try:
            async for piece in self._body:
                exchange.pieces.append((round(time.monotonic() - self._started, 4), piece))
                yield piece
            exchange.end = "end"
        except (httpx.HTTPError, OSError):
            exchange.end = "broken"
            raise

    def exchange(self) -> Exchange:
        """What is to be written."""
        times = [moment for moment, _ in self._exchange.pieces]
        clean = self._redactor.pieces([piece for _, piece in self._exchange.pieces])
        self._exchange.pieces = [(moment, piece) for moment, piece in zip(times, clean, strict=True) if piece]
        return self._exchange


def record(path: str | Path, handler: Handler | None = None) -> Cassette:
    """A handler that answers by ``handler`` (default: the network) and records every exchange; replaces ``path``."""
    return Cassette(path, "all", handler=handler)


def replay(path: str | Path, *, speed: float | None = None) -> Cassette:
    """A handler that answers from a recording, and fails on any request that is not in it. See `Cassette`."""
    return Cassette(path, "none", speed=speed)


# the cassette of the process

_installed: Cassette | None = None
_opened: dict[tuple[str, str], tuple[Cassette, object]] = {}


def use(cassette: Cassette | None) -> Cassette | None:
    """Use ``cassette`` for every client without a transport of its own, None for no more; returns the one before."""
    global _installed
    before, _installed = _installed, cassette
    return before


def current() -> Cassette | None:
    """The cassette in use: by `use`, else the file that ``MMSP_CASSETTE`` names.

    Raises TransportError when that one cannot be used.
    """
    if _installed is not None:
        return _installed
    path = os.environ.get("MMSP_CASSETTE", "").strip()
    try:
        return _shared(path) if path else None
    except (OSError, ValueError) as error:
        raise TransportError(f"MMSP_CASSETTE: {error}") from None


def open_cassette(path: str | Path | Cassette, mode: str | None = None) -> Cassette:
    """The cassette at ``path``: always the same object, so that several conversations share a file.

    While it is still being recorded, what is in it already answers who opens it next, as in a later run. A file that
    something else has changed or taken away is begun or read anew.
    """
    if isinstance(path, Cassette):
        return path
    cassette = _shared(path, mode)
    cassette.again()
    return cassette


def _shared(path: str | Path, mode: str | None = None) -> Cassette:
    mode = mode or os.environ.get("MMSP_CASSETTE_MODE", "").strip().lower() or "once"
    place = (str(Path(path).absolute()), mode)
    found, state = _opened.get(place, (None, None))
    if found is not None and found.records:
        if found.recorded and not found.path.exists():
            found = None
    elif found is not None and state != _state(found.path):
        found = None
    if found is None:
        found = Cassette(path, mode)
        _opened[place] = found, _state(found.path)
    return found


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def through(inner: Handler) -> Handler:
    """A handler that goes by the cassette in use at each request, and without one by ``inner``."""

    def handle(request: WireRequest) -> AbstractAsyncContextManager[Reply]:
        cassette = current()
        return _online(request, inner) if cassette is None else cassette.handle(request, _with_key(inner))

    return handle


def _with_key(inner: Handler) -> Handler:
    return lambda request: _online(request, inner)


def _online(request: WireRequest, inner: Handler) -> AbstractAsyncContextManager[Reply]:
    if any(KEYLESS in value for value in request.headers.values()):
        raise TransportError(
            "this client was made while a recording was replayed, without a key, so it cannot send anything: make it "
            "again, with a key"
        )
    return inner(request)


def _asks_for_token(request: WireRequest) -> bool:
    return request.method == "POST" and b"assertion=" in request.content and b"grant_type=" in request.content


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
