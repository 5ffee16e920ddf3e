"""What every dialect module offers, and the few values that pass between it and its callers.

A dialect is pure: it turns messages into `Request`s and received events into raw values. It opens
no socket, reads no clock and no environment. The functions below are module-level functions of each
dialect (`chat`, `messages`, `responses`, ...), looked up through `vendors.Vendor.dialect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mmsp_nb.protocol.items import UniConfig, UniMessage

if TYPE_CHECKING:
    from mmsp_nb.providers.body import Past
    from mmsp_nb.providers.vendors import Vendor

Raw = dict[str, Any]
"""One raw value out of a decoder. Four shapes, told apart by ``type``:

* a raw delta, ``{"type": "text.delta", "text": "..."}`` and so on, as in the protocol's delta items.
  ``fidelity`` may carry ``item_id``, the vendor's identity of the item the fragment belongs to.
  For tool calls it identifies the *call*: the assembler sorts interleaved fragments by it.
* ``{"type": "usage", "cached_tokens": 1, ...}``: a piece of usage; absent or None = not reported.
* ``{"type": "finish", "finish_reason": "stop"}``.
* ``{"type": "event", "event": {...}}``: dialect ``mmsp`` only, a public event of the server, to be handed
  on as it is, past the assembler.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, complete but for the endpoint and the key.

    ``path`` is appended to the base URL; ``headers`` are the dialect's own (never the auth header).
    ``framing`` says how the answer arrives: a stream of server-sent events, one JSON document, or
    AWS event-stream messages.
    """

    path: str
    body: dict[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    method: Literal["GET", "POST"] = "POST"
    framing: Literal["sse", "json", "aws"] = "sse"


@dataclass(frozen=True, slots=True)
class ModelPage:
    """One page of a model listing; ``next`` is the path (with query) of the next page, or None."""

    ids: list[str]
    next: str | None = None


class Decoder(Protocol):
    """Decodes the answer to one call. It may keep state, for instance which call an index belongs to.

    ``over``: an event has said that the answer is complete, so that nothing more is to be waited for.
    """

    over: bool

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        """One received event: its parsed JSON (a dict) and its SSE event name, if any.

        Raises ProviderStreamError for an error the provider reports in the stream.
        """

    def finish(self) -> Sequence[Raw]:
        """The stream is over (after several requests: the last one): what was held back, if anything."""


class Dialect(Protocol):
    """The functions of a dialect module."""

    def build(
        self,
        vendor: Vendor,
        model: str,
        messages: Sequence[UniMessage],
        config: UniConfig,
        past: Past | None = None,
    ) -> list[Request]:
        """The requests of one call, nearly always exactly one, to be sent one after the other.

        With ``past``, ``messages`` are only those that it does not know yet, and the body may hold an `Encoded`.

        Order of rejection: config first (UnsupportedParameterError), then items in message order
        (InvalidMessageError, UnsupportedContentError). Inputs are never modified.
        """

    def decoder(self, vendor: Vendor, model: str, requests: Sequence[Request] = ()) -> Decoder:
        """The decoder for the answers to ``requests``, fed with all of them in order.

        Given ``requests``, the embeddings dialect also checks that no vector is missing.
        """

    def models_request(self, vendor: Vendor) -> Request: ...

    def parse_models(self, payload: Any) -> ModelPage: ...


def remote_images(messages: Iterable[UniMessage]) -> list[str]:
    """The distinct http(s) image URLs of ``messages``, in order: image items and tool results' images."""
    urls: dict[str, None] = {}
    for message in messages:
        for item in message["content_items"]:
            image = item.get("type") == "image_url.done"
            found: list[Any] | None = [item.get("image_url")] if image else item.get("images")
            if found:
                urls.update((url, None) for url in found if is_remote(url))
    return list(urls)


def with_inlined(messages: Iterable[UniMessage], data_urls: Mapping[str, str]) -> list[UniMessage]:
    """Copies of ``messages`` in which each URL found in ``data_urls`` is replaced; the rest is shared."""

    def item(old: Any) -> Any:
        if old.get("type") == "image_url.done":
            return {**old, "image_url": data_urls.get(old["image_url"], old["image_url"])}
        if old.get("images"):
            return {**old, "images": [data_urls.get(url, url) for url in old["images"]]}
        return old

    return [{**message, "content_items": [item(old) for old in message["content_items"]]} for message in messages]


def is_remote(url: Any) -> bool:
    """Whether ``url`` is an http(s) URL (and not a ``data:`` URL)."""
    return isinstance(url, str) and url[:8].lower().startswith(("http:", "https:"))
