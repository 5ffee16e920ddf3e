"""What a question would send, without sending it: the request as the vendor's dialect builds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mmsp_nb import choosing, gauge
from mmsp_nb.agent import Agent
from mmsp_nb.protocol.configs import check_config
from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.validation import check_messages
from mmsp_nb.providers.base import remote_images, with_inlined
from mmsp_nb.questions import Question
from mmsp_nb.turns import join

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

__all__ = ["Preview", "preview"]

_FETCHED = "data:image/png;base64,AAAA"


@dataclass(frozen=True)
class Preview:
    """The first request of a question. No header and so no key is part of it.

    Attributes:
        requests: Method, address and body of each request; several only for embeddings. Empty for a client that is not
            ours, whose requests nobody knows.
        messages, config: What goes to the client.
        tokens: About what the request takes, tools included. ``window``: the model's context window, None if unknown.
        price: List price in US dollars of these tokens; None when it is not known.
        price_of_answer: The same of the answer at its ``max_tokens``; None when that is not set.
        masked: How many keys would be replaced by ``***``, by place; see `Turn.masked`.
        fetched: Addresses of pictures that would be fetched first; the body has a stand-in for them.
    """

    requests: list[tuple[str, str, dict[str, Any] | None]]
    messages: list[Any]
    config: dict[str, Any]
    tokens: int
    window: int | None
    price: Decimal | None
    price_of_answer: Decimal | None
    fetched: list[str]
    masked: dict[str, int]


def preview(chat: Conversation, question: Question) -> Preview:
    """What ``question`` would send first. Nothing is sent, fetched or changed.

    Raises what sending it would raise before a connection is made.
    """
    tools = chat.tools if question.tools is None else question.tools
    config: dict[str, Any] = {**chat.config, **question.config}
    question.guard(chat)
    agent = Agent(chat.client, tools, mask=question.mask)
    agent.config = config
    if question.typed is not None:
        agent.config, agent.tools = question.typed.plan(chat.client, config, tools)
    full = agent._turn_config(agent.config, True)
    messages = join(chat._sent(), chat._before)
    if question.prompt is not None:
        message = question.message()
        if messages and messages[-1]["role"] == "user":
            last = messages.pop()
            message = {**message, "content_items": [*last["content_items"], *message["content_items"]]}
        messages.append(message)
    messages = copy_item(messages)
    requests, fetched = _requests(chat.client, messages, full)
    measured = gauge.measure(messages, full, chat.client)
    count = measured.tokens + gauge.estimate(json.dumps(full["tools"])) if full.get("tools") else measured.tokens
    prices = _price(chat.client, count, full)
    return Preview(requests, messages, full, count, measured.window, *prices, fetched, question.masked)


def _requests(client: Any, messages: list[Any], config: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    endpoint, mender = getattr(client, "_endpoint", None), getattr(client, "_mender", None)
    if endpoint is None or mender is None:
        return [], []
    check_messages(messages, client=client.vendor.client)
    checked = check_config(config, client=client.vendor.client)
    sent, _ = mender(messages)
    urls = list(remote_images(sent)) if endpoint.vendor.inline_images else []
    if urls:
        sent = with_inlined(sent, dict.fromkeys(urls, _FETCHED))
    built = endpoint._dialect.build(endpoint.vendor, client.model, sent, checked)
    return [(each.method, endpoint.route.url(each), each.body) for each in built], urls


def _price(client: Any, count: int, config: Mapping[str, Any]) -> tuple[Decimal | None, Decimal | None]:
    cost = choosing.cost_of(client)
    if cost is None:
        return None, None
    limit = config.get("max_tokens")
    answer = None if limit is None else cost({"prompt_tokens": 0, "response_tokens": limit})
    return cost({"prompt_tokens": count, "response_tokens": 0}), answer
