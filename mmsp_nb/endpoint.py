"""A route made usable: messages become requests, requests are sent, model listings are read.

The client decides *when* things happen and what is recorded; here is *how* a vendor is reached.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.assembly import EventStream
from mmsp_nb.protocol.errors import HTTPStatusError, TransportError, UnsupportedParameterError
from mmsp_nb.protocol.items import UniConfig, UniMessage
from mmsp_nb.providers.base import Decoder, Dialect, Request, remote_images, with_inlined
from mmsp_nb.providers.body import Past, encode
from mmsp_nb.providers.errors import error_details
from mmsp_nb.providers.mmsp import upstream_error
from mmsp_nb.providers.routing import Route
from mmsp_nb.relay import Relay
from mmsp_nb.transport.aws import sign
from mmsp_nb.transport.google_auth import ServiceAccount
from mmsp_nb.transport.http import Response, Transport
from mmsp_nb.transport.images import ImageFetcher
from mmsp_nb.transport.wire import Headers, WireRequest

__all__ = ["Endpoint"]

MAX_PAGES = 1000

_PLACEHOLDER = "data:image/png;base64,AAAA"


class Endpoint:
    """Where the requests of one client go."""

    def __init__(self, route: Route, transport: Transport) -> None:
        self.route = route
        self.vendor = route.vendor
        self.transport = transport
        self.max_item = transport.max_item
        self.images = ImageFetcher(handler=transport.custom_handler)
        self.relays = route.vendor.dialect == "mmsp"
        """Whether the other side speaks our protocol itself: then all checks are its business."""
        self._account = ServiceAccount(route.api_key or "") if route.vendor.auth == "vertex" else None
        # on Bedrock the last question carries a mark, which moves on with the next one
        self._past = None if route.vendor.auth == "aws" else Past()
        self._dialect: Dialect = importlib.import_module(f"mmsp_nb.providers.{route.vendor.dialect}")

    async def requests(
        self, messages: Sequence[UniMessage], config: UniConfig, signal: AbortSignal | None, *, keep: bool = False
    ) -> list[Request]:
        """The requests of one call. Raises what the dialect rejects, before anything is fetched or sent.

        Args:
            keep: what is made of the messages is kept for the next call that begins with the same ones. Only for
                messages that nobody changes.
        """
        build, vendor, model = self._dialect.build, self.vendor, self.route.model
        past = self._past if keep else None
        fresh = messages if past is None else messages[past.follow(messages) :]
        if vendor.inline_images and (urls := remote_images(fresh)):
            if not self.images.has(urls):
                # whatever is to be rejected is rejected before a download
                build(vendor, model, with_inlined(messages, dict.fromkeys(urls, _PLACEHOLDER)), config)
            images = await self.images.data_urls(urls, client=vendor.client, signal=signal)
            # in the meantime another call may have gone on with another history
            fresh = with_inlined(messages if past is None else messages[past.follow(messages) :], images)
        return build(vendor, model, fresh, config, past)

    def forget(self) -> None:
        """Let go of what was kept of earlier messages."""
        if self._past is not None:
            self._past.forget()

    def reject_config(self, config: UniConfig) -> None:
        """Raise what the dialect rejects in ``config`` alone."""
        try:
            self._dialect.build(self.vendor, self.route.model, [], config)
        except UnsupportedParameterError:
            raise
        except Exception:  # there is no message, and some requests need one
            pass

    def stream(self) -> EventStream | Relay:
        """What turns the decoder's values into public events."""
        return Relay(self.vendor.client) if self.relays else EventStream(self.vendor.client)

    def decoder(self, requests: Sequence[Request]) -> Decoder:
        """The decoder for the answers to ``requests``, fed with all of them in order."""
        return self._dialect.decoder(self.vendor, self.route.model, requests)

    async def send(self, request: Request, signal: AbortSignal | None = None) -> Response:
        """Send ``request``; see `Transport.send`. What an MMSP server refuses is an UpstreamError."""
        client = self.vendor.client
        wire = WireRequest(
            request.method,
            self.route.url(request),
            Headers(self.route.headers_for(request)),
            b"" if request.body is None else encode(request.body),
            request.framing,
        )
        if self._account is not None:
            token = await self._account.token(self.transport, client=client, signal=signal)
            wire.headers["Authorization"] = f"Bearer {token}"
        elif self.vendor.auth == "aws":
            sign(wire, self.route.api_key or "", region=self.vendor.rules["region"])
        sending = self.transport.send(
            wire, client=client, signal=signal, parse_error=error_details, key_env=self.vendor.api_key_env
        )
        return await (self._relayed(sending) if self.relays else sending)

    async def _relayed(self, sending: Coroutine[Any, Any, Response]) -> Response:
        """The answer of an MMSP server, where any status but 200 is an error of its own kind."""
        client = self.vendor.client
        try:
            response = await sending
        except HTTPStatusError as error:
            said = error.__dict__
            payload = said["error"]
            if isinstance(payload, Mapping):
                # a body without an error object counts as text
                payload = {"error": payload} if payload.keys() & {"type", "message"} else json.dumps(payload)
            raise upstream_error(client, said["status"], payload, error.message) from None
        if response.status == 200:
            return response
        async with response:
            try:
                document = await response.json()
            except TransportError:  # no JSON: the status says enough
                document = None
        raise upstream_error(client, response.status, document)

    async def models(self) -> list[str]:
        """All model ids of the endpoint, in its order."""
        ids: list[str] = []
        request: Request | None = self._dialect.models_request(self.vendor)
        asked: set[str] = set()
        while request is not None and request.path not in asked and len(asked) < MAX_PAGES:
            asked.add(request.path)
            async with await self.send(request) as response:
                page = self._dialect.parse_models(await response.json())
            ids += page.ids
            request = Request(page.next, headers=request.headers, method="GET", framing="json") if page.next else None
        return ids
