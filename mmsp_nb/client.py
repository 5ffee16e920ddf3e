"""`AutoLLMClient`: one model behind one endpoint, with or without a memory.

Events and messages are plain dicts, as `mmsp_nb.protocol.items` describes them. Everything that
touches the network is async, and nothing happens before the first step of an iterator.
"""

from __future__ import annotations

import asyncio
import copy
import warnings
import weakref
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import AsyncGeneratorType, TracebackType
from typing import Any, NoReturn, Self, cast

from mmsp_nb import telemetry
from mmsp_nb.calls import Call
from mmsp_nb.endpoint import Endpoint
from mmsp_nb.masking import mask_keys
from mmsp_nb.mending import Mender
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.assembly import concat_uni_events_to_uni_message
from mmsp_nb.protocol.copying import copy_message, copy_messages
from mmsp_nb.protocol.errors import ConcurrentCallError, InvalidMessageError, MMSPError, ResponseFormatError, preview
from mmsp_nb.protocol.history import normalize_legacy_messages, now_ms, stamp
from mmsp_nb.protocol.items import UniConfig, UniEvent, UniMessage
from mmsp_nb.protocol.repairs import RepairReport
from mmsp_nb.protocol.validation import check_config, check_messages
from mmsp_nb.providers.observed import answered_by, provider_name
from mmsp_nb.providers.routing import Route, family, resolve
from mmsp_nb.providers.traits import origin
from mmsp_nb.providers.vendors import Vendor
from mmsp_nb.transport.failures import parse_json
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.wire import KEYLESS, public_url

__all__ = ["AutoLLMClient"]


class AutoLLMClient:
    """Talks to one model; finds the provider by the model's id.

    ::

        client = AutoLLMClient("claude-opus-5-5")
        message = {"role": "user", "content_items": [{"type": "text.done", "text": "Hello"}]}
        async for event in client.streaming_response_stateful(message, {"max_tokens": 500}):
            ...

    Args:
        model: the id as the provider spells it. ``"demo"`` and ``"local"`` need no key.
        api_key: default is the provider's environment variable, for instance ``OPENAI_API_KEY``.
        base_url: default is the provider's environment variable, else its public endpoint.
        client_type: for ids that do not tell, for instance ``"openai-chat"``; default is ``CLIENT_TYPE``.
        default_headers: sent with every request, over anything else of the same name.
        transport: limits, retries, recordings; default is a plain `Transport`.

    Raises:
        RoutingError: no client type for this model, or one that does not exist.
        ApiKeyRequiredError: there is no key, or the environment's may not go to this ``base_url``. While a
            recording is replayed none is needed.

    One client may be used from several event loops. ``async with`` (or `aclose`) ends what it still does.
    """

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        client_type: str | None = None,
        default_headers: Mapping[str, str] | None = None,
        *,
        transport: Transport | None = None,
    ) -> None:
        transport = transport or Transport()
        if not hasattr(transport, "send"):
            hint = "; write Transport(handler=...)" if callable(transport) else ""
            raise TypeError(f"transport must be a Transport, not {type(transport).__name__}{hint}")
        cassette = transport.cassette
        stand_in = KEYLESS if cassette is not None and cassette.replays else None
        try:
            route = resolve(model, api_key, base_url, client_type, default_headers, stand_in=stand_in)
        except MMSPError as error:
            # tools show the variables of a traceback's frames: those that know a key or the environment go
            del api_key, base_url, default_headers
            raise error.with_traceback(None) from None
        self._connect(route, transport)

    def _connect(self, route: Route, transport: Transport) -> None:
        self._endpoint = Endpoint(route, transport)
        self._history: list[UniMessage] = []
        self._checked = 0  # so many messages of the history are known to be valid
        self._marked = 0  # so many have an origin
        vendor = route.vendor
        self._mender = Mender(origin(vendor, route.model, route.base_url), vendor.traits(route.model))
        self._holder: Call | None = None  # the latest stateful call
        self._calls: set[Call] = set()

    def sibling(self, *, retries: int | None = None) -> Self:
        """Another client of the same model, endpoint and key, with an empty history, and ``retries`` if given."""
        other = object.__new__(type(self))
        transport = self._endpoint.transport
        if retries is not None and hasattr(transport, "policy"):
            transport = copy.copy(transport)
            transport.policy = replace(transport.policy, retries=retries)
        other._connect(self._endpoint.route, transport)
        return other

    # who it is

    @property
    def model(self) -> str:
        """The model id, as given."""
        return self._endpoint.route.model

    @property
    def vendor(self) -> Vendor:
        """The client type's row of the table of vendors."""
        return self._endpoint.vendor

    @property
    def client_type(self) -> str:
        return self.vendor.name

    @property
    def base_url(self) -> str:
        return self._endpoint.route.base_url

    @property
    def origin(self) -> str:
        """Who makes the opaque parts of the answers (signatures, encrypted reasoning) and can read them.

        Recorded messages have it as ``origin``. A vendor's name, or ``<client type>@<host>/<model>`` where the
        client type does not tell who answers.
        """
        return self._mender.origin

    @property
    def provider_name(self) -> str:
        """The vendor by its name in OpenTelemetry's conventions, where it has one; else the client type."""
        return provider_name(self.vendor, self.base_url)

    def __repr__(self) -> str:
        if not hasattr(self, "_endpoint"):  # while an error of its making is shown
            return "<AutoLLMClient that could not be made>"
        return (
            f"AutoLLMClient({self.model!r}, client_type={self.client_type!r}, base_url={public_url(self.base_url)!r})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an AutoLLMClient holds a key and connections, so it cannot be pickled or copied; keep get_history() and "
            "make a new client"
        )

    # answers

    def streaming_response(
        self,
        messages: Sequence[UniMessage],
        config: UniConfig | None = None,
        signal: AbortSignal | None = None,
    ) -> AsyncGenerator[UniEvent, None]:
        """Send ``messages`` and stream the answer. Touches no history; any number may run at once.

        Each message without ``created_at`` gets one, in place.

        Raises (at the first step or later):
            InvalidMessageError, UnsupportedParameterError, UnsupportedContentError: before sending.
            TransportError and its kin: the answer did not come, or not whole.
            ProviderStreamError, ToolCallArgumentParseError, IncompleteStreamError, EmptyResponseError:
                in place of the rest of the stream.
            AbortError: ``signal`` was aborted.
        """
        return self._start(Call(signal), messages, config)

    def streaming_response_stateful(
        self,
        message: UniMessage,
        config: UniConfig | None = None,
        signal: AbortSignal | None = None,
    ) -> AsyncGenerator[UniEvent, None]:
        """Send the history and ``message``, stream the answer, record both ahead of the stop event.

        Whatever ends the stream early records nothing: the same message may be sent again. One call
        at a time; an iterator that was dropped (after ``break``, say) does not count, one that
        somebody still keeps does: close it with ``await stream.aclose()``.

        Raises:
            ConcurrentCallError: at the first step, while another stateful call is unfinished.
            And everything that `streaming_response` raises.
        """
        return self._start(Call(signal, stateful=True), message, config)

    async def list_models(self) -> list[str]:
        """The endpoint's model ids, in its order.

        Where the client type was deduced from the model id, only ids of the same family.
        UnsupportedOperationError where there is no listing.
        """
        ids = await self._endpoint.models()
        own = None if self._endpoint.route.named else family(self.model)
        return ids if own is None else [model for model in ids if family(model) == own]

    @staticmethod
    def concat_uni_events_to_uni_message(events: Iterable[UniEvent]) -> UniMessage:
        """The assistant's message out of its events: done items in order, and what the stop says."""
        return concat_uni_events_to_uni_message(events)

    # history

    def get_history(self) -> list[UniMessage]:
        """A deep copy of the history."""
        return copy_messages(self._history)

    def set_history(self, history: Iterable[UniMessage]) -> None:
        """Replace the history by a deep copy of ``history``; it is checked when it is next sent."""
        if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
            raise InvalidMessageError(
                f"a history is a list of messages, not {type(history).__name__}", client=self.vendor.client
            )
        self._replace_history(copy_messages(normalize_legacy_messages(history)))

    def clear_history(self) -> None:
        """Forget the history. A running call goes on, and is recorded at its end."""
        self._replace_history([])

    def mended_history(self) -> tuple[list[UniMessage], RepairReport]:
        """The history as it is sent, and what was changed for that; both are copies.

        Nothing is changed in a history of this vendor's own. Messages with another ``origin`` lose what only
        their vendor can read, and what this one would refuse is mended. The history itself stays as it is.
        """
        check_messages(self._history[self._checked :], client=self.vendor.client, first=self._checked)
        mended, report = self._mender(self._history, keep=True)
        return copy_messages(mended), report

    def _replace_history(self, history: list[UniMessage]) -> None:
        self._history = history
        self._checked = self._marked = 0
        self._mender.forget()
        self._endpoint.forget()

    # life

    async def aclose(self) -> None:
        """End the calls that are still running, and forget fetched images.

        Their connections are closed; whoever waits for an event gets AbortError. The client may be
        used again afterwards.
        """
        here = asyncio.get_running_loop()
        for call in list(self._calls):
            stream = call.stream()
            if call.loop is here and isinstance(stream, AsyncGeneratorType) and not stream.ag_running:
                await stream.aclose()
            else:
                call.signal.abort("the client was closed")
        self._endpoint.images.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    # one call

    def _start(self, call: Call, given: Any, config: UniConfig | None) -> AsyncGenerator[UniEvent, None]:
        stream = self._run(call, given, config)
        call.stream = weakref.ref(stream)
        return stream

    async def _run(self, call: Call, given: Any, config: UniConfig | None) -> AsyncGenerator[UniEvent, None]:
        self._register(call)
        watch = telemetry.NOTHING
        try:
            messages, checked = self._prepared(call, given, config)
            watch = self._watch(messages, checked)
            sent = self._sendable(messages, call)
            endpoint, signal = self._endpoint, call.signal
            requests = await endpoint.requests(sent, checked, signal, keep=call.stateful)
            decoder = endpoint.decoder(requests)
            stream = endpoint.stream()
            decode, push, parse = decoder.decode, stream.push, watch.reading(parse_json, answered_by)
            out: list[UniEvent] = []
            failure: MMSPError | None = None
            for request in requests:
                async with await watch.within(endpoint.send(request, signal)) as response:
                    due = endpoint.max_item  # no item can be larger than what has come
                    while (batch := await response.batch()) is not None:
                        if response.received > due:
                            due = response.received + stream.room(endpoint.max_item)
                        for name, data in batch:
                            signal.throw_if_aborted()
                            try:
                                push(decode(parse(data), name), out)
                            except Exception as error:
                                failure = response.purge(self._failure(error, data))
                            for event in out:
                                yield event
                            out.clear()
                            if failure is not None:
                                raise failure
                            if decoder.over:
                                response.end()
                                break
            signal.throw_if_aborted()
            try:
                push(decoder.finish(), out)
                stream.close(out)
            except Exception as error:
                failure = self._failure(error)
            stop = out.pop() if failure is None else None
            for event in out:
                yield event
            if call.stateful or failure is not None:
                signal.throw_if_aborted()
            if failure is not None:
                raise failure
            assert stop is not None and stream.message is not None
            if call.message is not None:
                if sent is messages:
                    self._mark(self._history[self._marked : self._checked])
                    self._marked = self._checked
                self._mark((call.message, stream.message))
                self._history += [call.message, stream.message]
                call.over = True
            if checked.get("trace_id") and not endpoint.relays:
                await self._trace([*messages, stream.message], checked)
            watch.done(stream.message)
            yield stop
        except BaseException as error:
            watch.failed(error)
            raise
        finally:
            call.over = True
            call.unsubscribe()
            self._calls.discard(call)

    def _register(self, call: Call) -> None:
        if call.stateful:
            holder = self._holder
            if holder is not None and holder.unfinished:
                raise ConcurrentCallError(
                    "another stateful call of this client is unfinished. Read it to its end, or close it with "
                    "`await stream.aclose()`; for parallel calls use several clients, or streaming_response",
                    client=self.vendor.client,
                )
            if holder is not None:
                holder.signal.abort("superseded")
                self._calls.discard(holder)
            self._holder = call
        call.begin()
        self._calls.add(call)

    def _prepared(self, call: Call, given: Any, config: Mapping[str, Any] | None) -> tuple[list[UniMessage], UniConfig]:
        """The messages and the config that a call is to send, checked."""
        client, relays, now = self.vendor.client, self._endpoint.relays, now_ms()
        history = self._history
        first = 0
        if call.stateful:
            [message] = normalize_legacy_messages([given])
            stamp([*history[self._checked :], message], now)  # those that were checked have been stamped
            call.message = copy_message(message)
            messages = [*history, call.message]
            first = self._checked
        else:
            if not isinstance(given, Sequence) or isinstance(given, str | bytes):
                check_messages(cast("Any", given), client=client)  # raises
            stamp(given, now)
            messages = list(given) if relays else normalize_legacy_messages(given)
        if relays:
            call.signal.throw_if_aborted()
            self._checked = len(messages) - 1 if call.stateful else self._checked
            return messages, cast("UniConfig", dict(config or {}))
        fault: InvalidMessageError | None = None
        try:
            check_messages(messages[first:], client=client, first=first)
        except InvalidMessageError as error:
            if error.message_index is not None:  # type: ignore[attr-defined]
                raise
            fault = error
        call.signal.throw_if_aborted()
        checked = check_config(config, client=client)
        if fault is not None:
            self._endpoint.reject_config(checked)
            raise fault
        if call.stateful and self._history is history:
            self._checked = len(messages) - 1
        return messages, checked

    def _sendable(self, messages: list[UniMessage], call: Call) -> list[UniMessage]:
        """The messages without what only other vendors can read or take; the same list if there is no such thing."""
        try:
            return self._mender(messages, keep=call.stateful)[0]
        except InvalidMessageError:  # only what goes to an MMSP server was not checked, and that is to say so
            return messages

    def _mark(self, messages: Iterable[UniMessage]) -> None:
        """This vendor has taken the messages or written them, so they count as its own."""
        for message in messages:
            if isinstance(message, dict):
                message.setdefault("origin", self.origin)

    def _watch(self, messages: Sequence[UniMessage], config: UniConfig) -> telemetry.Watch:
        if not telemetry.loaded():
            return telemetry.NOTHING
        route = self._endpoint.route
        return telemetry.request(
            model=self.model,
            provider=self.provider_name,
            base_url=self.base_url,
            config=config,
            messages=messages,
            embeds=self.vendor.dialect == "embeddings",
            secrets=(route.api_key,) if route.api_key else (),
        )

    async def _trace(self, messages: Sequence[UniMessage], config: UniConfig) -> None:
        """Write the trace files. Whatever goes wrong there, the answer is whole."""
        from mmsp_nb import tracing

        try:
            await asyncio.to_thread(
                tracing.save,
                *(config.get("trace_id") or "", copy_messages(messages), config, self.model),
                secrets=[key for key in (self._endpoint.route.api_key,) if key],
            )
        except Exception as error:
            warnings.warn(f"the trace was not written: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)

    def _failure(self, error: Exception, data: bytes | None = None) -> MMSPError:
        """The error for an event of the stream that cannot be taken in; without ``data`` for all of them together."""
        if isinstance(error, MMSPError):
            return error
        shown = "" if data is None else f": {preview(mask_keys(' '.join(data.decode('utf-8', 'replace').split())))}"
        what = "the answer cannot be put together" if data is None else "an event of the stream cannot be understood"
        failure = ResponseFormatError(
            f"{what} ({type(error).__name__}: {error}){shown}. Ask again; if that stays so, check client_type (it is "
            f"{self.vendor.name!r}) and base_url",
            client=self.vendor.client,
            url=public_url(self.base_url),
        )
        failure.__cause__ = error
        return failure
