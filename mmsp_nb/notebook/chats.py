"""The conversations that ``%%mmsp`` cells talk to, by name."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.suggestions import did_you_mean

from .behind import Behind
from .options import OptionError

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

    from .host import Cells
    from .sources import Source

__all__ = ["Chats", "Defaults", "in_magics"]

FIRST = "main"


@dataclass(frozen=True)
class Defaults:
    """What a new chat begins with. ``model`` None chooses by what is there."""

    model: str | None = None
    client: str | None = None
    system: str | None = None
    max_turns: int = 10
    budget: float | None = None
    mask_keys: bool = True


LEFT = 8
"""Chats of one name that can be brought back, after so many were begun anew in their place."""


class Chats:
    """Named conversations, one of which is the current one. They are made when they are first used.

    Args:
        defaults: Says what a new chat begins with.
        namespace: The user's variables: a Conversation in one of them can be used by its name.
    """

    def __init__(self, defaults: Callable[[], Defaults], namespace: Mapping[str, Any]) -> None:
        self._defaults = defaults
        self._namespace = namespace
        self.current = FIRST
        self.cells: Cells | None = None
        """The cells of the shell: their sources, and the exceptions that ended them."""
        self.made: dict[str, tuple[str, int]] = {}
        """By the id of a turn: what the cell that made it was, and the number of its run."""
        self._chats: dict[str, Conversation] = {}
        self._borrowed: set[str] = set()  # names of chats that came out of variables
        self._left: dict[str, deque[Conversation]] = {}  # chats that were begun anew, by their name
        self.behind = Behind()
        self.offer: Callable[[str], None] = lambda text: None
        """Puts the first block of an answer's code into the next cell, and keeps the others."""
        self.propose: Callable[[str, Source], None] = lambda text, source: None
        """Shows and keeps the new version of a cell that is in an answer."""
        self.compared: weakref.WeakKeyDictionary[Conversation, Any] = weakref.WeakKeyDictionary()
        """The last comparison of each chat."""

    def names(self) -> list[str]:
        """The names of all chats that have begun."""
        return list(self._chats)

    def find(self, name: str | None = None) -> Conversation | None:
        """The chat of that name, the current one by default; None when it has not begun."""
        name = name or self.current
        return self._chats.get(name) or self._variable(name)

    def get(
        self, name: str | None = None, *, model: str | None = None, client: str | None = None, using: Any = None
    ) -> Conversation:
        """The chat of that name, made if need be; ``model`` and ``client`` (a client type) change what answers.

        So does ``using``, a client. Its history is taken over when the chat has no turn yet, else it gets the chat's.

        Raises OptionError when the model cannot be used.
        """
        from mmsp_nb.choosing import stateful

        found = self.find(name)
        try:
            if found is None or (
                using is not None and not found.turns and _wrapped(found.client) is not using and self._own(found)
            ):
                return self._make(name or self.current, model, client, using)
            if using is not None:
                if _wrapped(found.client) is not using:
                    found.switch(client=stateful(using))
                return found
            if client is not None or (model is not None and model != found.model):
                options = {} if client is None else {"client_type": client}
                found.switch(model or found.model, **options)
        except MMSPError as error:
            raise OptionError(in_magics(str(error))) from None
        return found

    def renew(
        self, name: str | None = None, *, model: str | None = None, client: str | None = None, using: Any = None
    ) -> Conversation:
        """A new chat under that name. The one before stays in its variable if it has one, and `bring_back` finds it.

        Unless something else is said it is answered by the model of the chat of that name, else of the current one.
        """
        name = name or self.current
        old = self._chats.get(name)
        before = old or self.find()
        if using is not None and hasattr(using, "set_history"):
            using.set_history([])
        try:
            if using is None and model is None and client is None and before is not None:
                made = self._like(before, name)
            else:
                made = self._make(name, model, client, using)
        except MMSPError as error:
            raise OptionError(in_magics(str(error))) from None
        if old is not None and old.turns:
            self._left.setdefault(name, deque(maxlen=LEFT)).append(old)
        return made

    def bring_back(self) -> Conversation | None:
        """Put the chat that was there before the current one was begun anew in its place; None when there is none."""
        left = self._left.get(self.current)
        if not left:
            return None
        chat = left.pop()
        self._chats[self.current] = chat
        chat._load_history()  # a client of the user's own may have been used for both
        return chat

    def glimpse(
        self,
        name: str | None = None,
        *,
        new: bool = False,
        model: str | None = None,
        client: str | None = None,
        using: Any = None,
    ) -> Conversation:
        """What `get` or `renew` would give, as a conversation of its own if anything would change: nothing does.

        Raises OptionError when the model cannot be used.
        """
        found = self.find(name)
        changes = using is not None or client is not None or (model is not None and found and model != found.model)
        if found is not None and not new and not changes:
            return found
        stand_in = None if using is None else _stand_in(using)
        try:
            if found is None or new:
                same = found or self.find()
                if stand_in is None and model is None and client is None and same is not None:
                    return self._like(same, name or self.current, keep=False)
                return self._make(name or self.current, model, client, stand_in, keep=False)
            if stand_in is None:
                from mmsp_nb.choosing import make_client

                options = {"transport": found._transport} | ({} if client is None else {"client_type": client})
                stand_in = make_client(model or found.model, options)
            return found.fork(client=stand_in)
        except MMSPError as error:
            raise OptionError(in_magics(str(error))) from None

    def reconnect(self) -> None:
        """Make the clients of all chats again: what they reach has changed. Models nobody named are chosen anew."""
        for name, chat in list(self._chats.items()):
            if not chat.turns and chat.why is not None and self._variable(name) is not chat:
                del self._chats[name]
                continue
            kind = getattr(chat.client, "client_type", None)
            try:
                chat.switch(chat.model, **({} if kind is None else {"client_type": kind}))
            except MMSPError:  # it says so when it is asked
                pass

    def begin_again(self, defaults: Callable[[], Defaults]) -> None:
        """The extension was loaded once more: what was said stays, what has not begun takes the settings of now."""
        self._defaults = defaults
        self._chats = {name: chat for name, chat in self._chats.items() if chat.turns}
        if self.find() is None and self.current != FIRST:
            self.current = FIRST

    def use(self, name: str) -> Conversation:
        """Make that chat, or the Conversation in the variable of that name, the current one."""
        found = self.find(name)
        if name in self._borrowed:  # the variable may hold another conversation by now
            found = self._variable(name) or found
        if found is None:
            known = [*self._chats, *self.variables()]
            raise OptionError(f"there is no chat {name!r}{did_you_mean(name, known)}; %mmsp new {name} begins one")
        if name not in self._chats:
            self._borrowed.add(name)
        self._chats[name] = found
        self.current = name
        return found

    def put(self, name: str, chat: Conversation) -> None:
        """Let ``chat`` be the one of that name, and the current one."""
        self._chats[name] = chat
        self.current = name

    def _own(self, chat: Conversation) -> bool:
        return any(each is chat for each in self._chats.values()) and self._variable(self.current) is not chat

    def _like(self, before: Conversation, name: str, *, keep: bool = True) -> Conversation:
        """A new chat that is answered as ``before`` is, where its client can be had once more."""
        client = None
        if hasattr(before.client, "sibling"):
            client = before.client.sibling()
        elif _wrapped(before.client) is not before.client:
            client = _wrapped(before.client)  # it shows no history, so that there is none to share
        made = self._make(name, None, None, client, keep=keep)
        if client is not None:
            made._transport, made.why = before._transport, before.why
        return made

    def _make(
        self, name: str, model: str | None, client: str | None, using: Any = None, *, keep: bool = True
    ) -> Conversation:
        from mmsp_nb.conversation import Conversation
        from mmsp_nb.tools import registry

        defaults = self._defaults()
        if model is None and using is None:
            model, client = defaults.model, client or defaults.client
        options: dict[str, Any] = {} if client is None else {"client_type": client}
        if using is not None:
            options = {"client": using}
        options |= {"system": defaults.system, "max_turns": defaults.max_turns, "budget": defaults.budget}
        options["mask_keys"] = defaults.mask_keys
        chat = Conversation(model, tools=registry, name=name, **options)
        if keep:
            self._chats[name] = chat
        return chat

    def _variable(self, name: str) -> Conversation | None:
        value = self._namespace.get(name)
        return value if _is_conversation(value) else None

    def variables(self) -> list[str]:
        """Variables of the user that hold a Conversation."""
        return [name for name, value in self._namespace.items() if _is_conversation(value)]


def _stand_in(client: Any) -> Any:
    """A client that is asked nothing in place of ``client``, whose history is left alone."""
    if hasattr(client, "sibling"):
        return client.sibling()
    from mmsp_nb.restoring import AbsentClient

    model = str(getattr(client, "model", None) or type(client).__name__)
    return AbsentClient(model, getattr(client, "client_type", None), RuntimeError("nothing is asked in a dry run"))


def _wrapped(client: Any) -> Any:
    return getattr(client, "wrapped", client)


def _is_conversation(value: Any) -> bool:
    from mmsp_nb.conversation import Conversation

    return isinstance(value, Conversation)


def in_magics(said: str) -> str:
    """What is wrong with a model, in the words of the magics."""
    return said.replace("any other needs client_type=, for instance", "any other needs %%mmsp --client-type, as in")
