"""`Question`: one question on its way through a conversation; and what a prompt may be made of."""

from __future__ import annotations

import asyncio
import time
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmsp_nb import choosing, hosts, media
from mmsp_nb.agent import Agent
from mmsp_nb.answer import Answer
from mmsp_nb.keyless import KeyMask, said
from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.errors import InvalidMessageError, UnsupportedOperationError
from mmsp_nb.protocol.history import normalize_legacy_messages, now_ms
from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.protocol.validation import check_messages
from mmsp_nb.tools import Policy, ToolRegistry, Tools, Verdict, registry_of
from mmsp_nb.turns import Recorder, Turn
from mmsp_nb.typed import TypedAnswer

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

__all__ = ["Prompt", "Question", "Tools", "registry_of", "user_message"]

Prompt = str | Sequence[Any] | None

CLOSING = 2.0
"""Seconds that an abandoned question has to close its connection."""


class Question:
    """What was asked, and how far it is. ``prompt`` is None to go on with what is pending.

    ``verdicts``: what a person said of the calls that wait, by their index. ``approve``: who can be asked. ``among``:
    tools that ``tools`` may name.
    """

    def __init__(
        self,
        prompt: Any,
        images: Any = (),
        config: Mapping[str, Any] | None = None,
        tools: Tools | None = None,
        signal: Any = None,
        *,
        type: Any = None,
        policy: Policy | None = None,
        verdicts: Mapping[int, Verdict] | None = None,
        among: ToolRegistry | None = None,
    ) -> None:
        self.images = _several(images)
        self.prompt = "" if prompt is None and self.images else prompt
        self.config = choosing.defaults(config)
        self.tools = None if tools is None else registry_of(tools, among)
        self.signal = signal
        self.typed = None if type is None else TypedAnswer(type)
        self.policy = choosing.policy_of(policy)
        self.verdicts = verdicts
        self.held: list[Item] = []
        self.cell = hosts.cell()
        self.recorder: Recorder | None = None
        self.agent: Agent | None = None
        self.mask: KeyMask | None = None
        self.over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stream: Callable[[], Any] = lambda: None

    def watch(self, stream: AsyncGenerator[Any, None]) -> None:
        """Know the iterator, weakly: one that nobody keeps any more was abandoned."""
        self._stream = weakref.ref(stream)

    def begin(self, chat: Conversation) -> None:
        """The first step, on the running loop."""
        self._loop = asyncio.get_running_loop()
        self.guard(chat)

    def guard(self, chat: Conversation) -> None:
        """Keep keys from the model, unless ``chat`` wants them sent."""
        self.mask = KeyMask.of(chat.client) if chat.mask_keys else None

    @property
    def masked(self) -> dict[str, int]:
        """How many keys were replaced so far, by place: the dict of the mask, which goes on counting."""
        return {} if self.mask is None else self.mask.found

    def message(self, pending: UniMessage | None = None) -> UniMessage:
        """The user's message, of the prompt or a copy of one that is pending, as the model may read it."""
        message = user_message(self.prompt, self.images) if pending is None else copy_item(pending)
        return message if self.mask is None else self.mask.message(message)

    async def closed(self) -> None:
        """Wait until an abandoned iterator was closed by its loop, which then releases the client; not for ever."""
        deadline = time.monotonic() + CLOSING
        while not self.over and self._loop is not None and self._loop.is_running() and time.monotonic() < deadline:
            await asyncio.sleep(0 if self._loop is asyncio.get_running_loop() else 0.01)

    def like(self, last: Turn) -> None:
        """Go on as the turn before was asked, but for what is said otherwise."""
        self.tools = last.asked.get("tools") if self.tools is None else self.tools
        self.policy = self.policy or last.asked.get("policy")
        if self.typed is None and last.typed is not None:
            self.typed = last.typed.again()

    @property
    def turn(self) -> Turn | None:
        return None if self.recorder is None else self.recorder.turn

    def answer(self, shown: bool) -> Answer:
        """What came of it."""
        if self.turn is None:
            raise UnsupportedOperationError("the host has not consumed the stream", operation="ask")
        if self.turn.masked and not shown and isinstance(hosts.current(), hosts.PlainHost):
            note = f"{said(self.turn.masked)}. Conversation(mask_keys=False) sends them"
            warnings.warn(note, stacklevel=4)  # where `ask` was called; Python says it once for each such line
        return Answer(self.turn, shown=shown)

    @property
    def unfinished(self) -> bool:
        """Whether somebody may still read it to its end."""
        if self.over or self._stream() is None:
            return False
        return self._loop is not None and not self._loop.is_closed()


def user_message(prompt: Any, images: Iterable[Any] = ()) -> UniMessage:
    """The message for a prompt: text, or a list of texts, pictures, protocol items and messages.

    Raises InvalidMessageError for what cannot be one.
    """
    items: list[Item] = [_picture(image) for image in images]
    for part in prompt if isinstance(prompt, list | tuple) else [prompt]:
        if isinstance(part, str):
            if part.strip():
                items.append({"type": "text.done", "text": part})
        elif isinstance(part, Mapping):
            items += _items_of(part)
        else:
            try:
                items.append(_picture(part))
            except InvalidMessageError as error:
                why = f"a prompt is a text, or a list of texts and pictures; {error.message}"
                raise InvalidMessageError(why, message_index=0) from None
    if not items:
        raise InvalidMessageError("the prompt is empty", message_index=0)
    message: UniMessage = {"role": "user", "content_items": items, "created_at": now_ms()}
    check_messages([message])
    return message


def _items_of(part: Mapping[str, Any]) -> list[Item]:
    """The items of a message, or of an item alone, as copies."""
    message: Any = dict(part) if "role" in part or "content_items" in part else {"content_items": [dict(part)]}
    if (role := message.setdefault("role", "user")) == "assistant":
        raise InvalidMessageError(
            f"a prompt is what the user says, not a message of the {role}: give a whole history to a client's "
            "set_history(), and the client to Conversation(client=...)",
            message_index=0,
        )
    [message] = normalize_legacy_messages([message])
    check_messages([message])
    items: list[Item] = copy_item(message["content_items"])
    return items


def _picture(image: Any) -> Item:
    return {"type": "image_url.done", "image_url": media.image_url(image)}


def _several(images: Any) -> list[Any]:
    """``images`` as a list, also when one was given by itself."""
    several = isinstance(images, list | tuple | set) or (hasattr(images, "__next__") and not hasattr(images, "read"))
    return list(images) if several else [images]
