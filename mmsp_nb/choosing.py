"""The client that a conversation talks to: which one when none is named, how it is made, who it is, what it costs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.items import UniConfig
from mmsp_nb.protocol.suggestions import did_you_mean

if TYPE_CHECKING:
    from mmsp_nb.local import Choice
    from mmsp_nb.tools import Policy

__all__ = [
    *("choose", "cost_of", "defaults", "make_client", "origin", "policy_of", "prices", "stateful", "with_cassette"),
]

_CLIENT_OPTIONS = ("api_key", "base_url", "client_type", "default_headers", "transport")
_OPTIONS = (
    "tools", "system", "config", "policy", "max_turns", "max_calls", "max_cost", "budget", "name", "client",
    "cassette", "mask_keys",
)  # fmt: skip


def choose(transport: Any = None) -> Choice:
    """The model to use, and why. ``transport`` is what will carry its requests, if that is known.

    A recording knows which model was chosen when it was made, so that it is replayed with the same one; while
    recording, the choice is noted there.
    """
    from mmsp_nb import local
    from mmsp_nb.local import Choice

    cassette = _recording() if transport is None else getattr(transport, "cassette", None)
    if cassette is not None and cassette.replays and cassette.choice is not None:
        model, client_type = cassette.choice
        return Choice(model, client_type, "the recording was made with it")
    choice = local.choose(os.environ)
    if cassette is not None:
        cassette.remember_choice(choice.model, choice.client_type)
    return choice


def _recording() -> Any:
    """The recording in use. Does not load the network where there can be none: `choose` is light."""
    if "mmsp_nb.transport.cassette" not in sys.modules and not os.environ.get("MMSP_CASSETTE", "").strip():
        return None
    from mmsp_nb.transport.cassette import current

    return current()


def make_client(model: str, options: Mapping[str, Any]) -> Any:
    """A client for ``model``; TypeError for an option that none has."""
    from mmsp_nb.client import AutoLLMClient

    for name in options:
        if name not in _CLIENT_OPTIONS:
            if name in UniConfig.__annotations__:
                raise TypeError(f"{name!r} belongs into the config: config={{{name!r}: ...}}")
            near = did_you_mean(name, [*_CLIENT_OPTIONS, *_OPTIONS])
            raise TypeError(f"unknown option {name!r} of a conversation{near}")
    return AutoLLMClient(model, **options)


def stateful(client: Any) -> Any:
    """``client``, with a history if it has none of its own; TypeError when it is none of the protocol."""
    if isinstance(client, type) or not hasattr(client, "streaming_response_stateful"):
        hint = f"; for a model's id write Conversation({client!r})" if isinstance(client, str) else ""
        raise TypeError(f"client must be an AutoLLMClient or another client of the protocol, not {client!r:.80}{hint}")
    if hasattr(client, "get_history") and hasattr(client, "set_history"):
        return client
    from mmsp_nb.bare import BareClient

    return BareClient(client)


def defaults(config: Any) -> dict[str, Any]:
    """``config`` as a dict of its own; TypeError when it is none."""
    if config is not None and not isinstance(config, Mapping):
        raise TypeError(f"config must be a dict such as {{'max_tokens': 500}}, not {type(config).__name__}")
    return dict(config or {})


def policy_of(policy: Any) -> Policy | None:
    """``policy``; TypeError when it is none."""
    from mmsp_nb.tools import Policy

    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy must be a Policy, such as Policy(ask=['*']), not {policy!r:.80}")
    return policy


def with_cassette(cassette: Any, client: Any, options: Mapping[str, Any]) -> Any:
    """A transport that records to ``cassette``, or replays it; TypeError beside a client or another transport."""
    from mmsp_nb.transport.cassette import open_cassette
    from mmsp_nb.transport.http import Transport

    if client is not None or options.get("transport") is not None:
        raise TypeError("a cassette takes the place of a transport: give Transport(handler=Cassette(...)) instead")
    return Transport(handler=open_cassette(cassette))


def origin(client: Any) -> str | None:
    """Who can read what ``client`` gets; any client of the protocol will do for a conversation."""
    return getattr(client, "origin", None) or getattr(client, "client_type", None)


def prices(client: Any) -> dict[str, Any] | None:
    """List prices of the client's model; None when they are not known."""
    from mmsp_nb.providers import catalog

    model, base_url = getattr(client, "model", None), getattr(client, "base_url", None)
    if not isinstance(model, str):
        return None
    found = catalog.find(model, base_url) if isinstance(base_url, str) else None
    return None if found is None else found.pricing("USD")


def cost_of(client: Any) -> Callable[[Any], Decimal | None] | None:
    """From usage to list price for the client's model; None when its prices are not known."""
    known = prices(client)
    return None if known is None else lambda usage: tokens.cost(usage, known)
