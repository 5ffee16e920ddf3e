"""From an HTTP exchange to a mind and back: routing, keys, refusals in each vendor's words."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from . import wire
from .front import Answer, Exchange
from .wire import embeddings
from .wire.neutral import Ask, BadRequest


class Mind(Protocol):
    """Whoever thinks up the answers."""

    models: Sequence[str]
    """The ids that listings name. Any other id is served as well."""

    owner: str
    """Who listings say the models are from."""

    embeds: bool
    """Whether embeddings are served."""

    def answer(self, ask: Ask, target: wire.Target, exchange: Exchange) -> Answer:
        """Answer one request. May raise BadRequest."""


class Service:
    """The function that a `Front` serves.

    Without ``api_key`` any key is right and none is needed. ``home`` is the text shown at ``/``.
    """

    def __init__(self, mind: Mind, *, api_key: str | None = None, home: str = "") -> None:
        self.mind, self.api_key, self.home = mind, api_key, home

    def __call__(self, exchange: Exchange) -> Answer:
        if exchange.method in ("GET", "HEAD") and exchange.path == "/health":
            return Answer.json({"status": "ok"})
        if exchange.method in ("GET", "HEAD") and exchange.path == "/":
            return Answer(self.home.encode(), 200, {"Content-Type": "text/plain; charset=utf-8"})
        target = wire.target(exchange.method, exchange.path, exchange.headers)
        spoken = target.wire if target else wire.guess(exchange.headers)
        try:
            self._check(exchange)
            if target is None:
                raise BadRequest(f"Invalid URL ({exchange.method} {exchange.path})", 404)
            return self._serve(target, exchange)
        except BadRequest as refusal:
            return refuse(spoken, refusal)

    def _check(self, exchange: Exchange) -> None:
        if self.api_key is None:
            return
        if not exchange.key:
            raise BadRequest("You didn't provide an API key.", 401)
        if not hmac.compare_digest(exchange.key.encode(), self.api_key.encode()):
            raise BadRequest("Incorrect API key provided.", 401)

    def _serve(self, target: wire.Target, exchange: Exchange) -> Answer:
        mind = self.mind
        if target.kind == "models":
            return Answer.json(wire.models(target.wire, mind.models, exchange.query, mind.owner))
        if target.kind == "model":
            if target.model not in mind.models:
                raise BadRequest(f"The model '{target.model}' does not exist.", 404, "model_not_found")
            return Answer.json(wire.model(target.wire, target.model, mind.owner))
        body = parse(exchange.body)
        if target.kind == "answer":
            return mind.answer(target.wire.read(body, target.model, target.stream), target, exchange)
        if not mind.embeds:
            raise BadRequest("This local model makes no embeddings; the model 'demo' does.", 501)
        if target.kind == "embeddings":
            return Answer.json(embeddings.openai(body))
        return Answer.json(embeddings.gemini(body, target.batch))


def parse(body: bytes) -> Mapping[str, Any]:
    """A request's JSON object; anything else is a BadRequest."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("We could not parse the JSON body of your request.") from None
    if not isinstance(value, Mapping):
        raise BadRequest("The body of the request must be a JSON object.")
    return value


def refuse(spoken: wire.Wire, refusal: BadRequest, headers: Mapping[str, str] | None = None) -> Answer:
    """A refusal as the vendor would send it."""
    body = spoken.error(refusal.status, refusal.message, refusal.code, refusal.param)
    name = "request-id" if spoken.NAME == "messages" else "x-request-id"
    return Answer.json(body, refusal.status, {name: "req_011demo", **(headers or {})})
