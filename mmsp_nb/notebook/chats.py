"""The conversations that ``%%mmsp`` cells talk to, by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.suggestions import did_you_mean

from .behind import Behind
from .options import OptionError

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

__all__ = ["Chats", "Defaults"]

FIRST = "main"


@dataclass(frozen=True)
class Defaults:
    """What a new chat begins with. ``model`` None chooses by what is there."""

    model: str | None = None
    client: str | None = None
    system: str | None = None
    max_turns: int = 10


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
        self.failures: Mapping[int, BaseException] | None = None
        """The last exceptions, for ``{{Err[3]}}``."""
        self.made: dict[str, tuple[str, int]] = {}
        """By the id of a turn: what the cell that made it was, and the number of its run."""
        self._chats: dict[str, Conversation] = {}
        self.behind = Behind()
        self.offer: Callable[[str], None] = lambda text: None
        """Puts the code of an answer into the next cell."""
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
        from mmsp_nb.protocol.errors import MMSPError

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
            raise OptionError(_said(error)) from None
        return found

    def renew(
        self, name: str | None = None, *, model: str | None = None, client: str | None = None, using: Any = None
    ) -> Conversation:
        """A new chat under that name. The one before stays in its variable, if it has one."""
        from mmsp_nb.protocol.errors import MMSPError

        name = name or self.current
        before = self._chats.get(name)
        if using is not None:
            if hasattr(using, "set_history"):
                using.set_history([])
        elif model is None and client is None and before is not None:
            model, client = before.model, getattr(before.client, "client_type", None)
        try:
            return self._make(name, model, client, using)
        except MMSPError as error:
            raise OptionError(_said(error)) from None

    def reconnect(self) -> None:
        """Make the clients of all chats again: what they reach has changed. Models nobody named are chosen anew."""
        from mmsp_nb.protocol.errors import MMSPError

        for name, chat in list(self._chats.items()):
            if not chat.turns and chat.why is not None and self._variable(name) is not chat:
                del self._chats[name]
                continue
            kind = getattr(chat.client, "client_type", None)
            try:
                chat.switch(chat.model, **({} if kind is None else {"client_type": kind}))
            except MMSPError:  # it says so when it is asked
                pass

    def use(self, name: str) -> Conversation:
        """Make that chat, or the Conversation in the variable of that name, the current one."""
        found = self.find(name)
        if found is None:
            known = [*self._chats, *self._variables()]
            raise OptionError(f"there is no chat {name!r}{did_you_mean(name, known)}; %mmsp new {name} begins one")
        self._chats.setdefault(name, found)
        self.current = name
        return found

    def put(self, name: str, chat: Conversation) -> None:
        """Let ``chat`` be the one of that name, and the current one."""
        self._chats[name] = chat
        self.current = name

    def _own(self, chat: Conversation) -> bool:
        return any(each is chat for each in self._chats.values()) and self._variable(self.current) is not chat

    def _make(self, name: str, model: str | None, client: str | None, using: Any = None) -> Conversation:
        from mmsp_nb.conversation import Conversation
        from mmsp_nb.tools import registry

        defaults = self._defaults()
        if model is None and using is None:
            model, client = defaults.model, client or defaults.client
        options: dict[str, Any] = {} if client is None else {"client_type": client}
        if using is not None:
            options = {"client": using}
        chat = Conversation(
            model, tools=registry, system=defaults.system, max_turns=defaults.max_turns, name=name, **options
        )
        self._chats[name] = chat
        return chat

    def _variable(self, name: str) -> Conversation | None:
        value = self._namespace.get(name)
        return value if _is_conversation(value) else None

    def _variables(self) -> list[str]:
        return [name for name, value in self._namespace.items() if _is_conversation(value)]


def _wrapped(client: Any) -> Any:
    return getattr(client, "wrapped", client)


def _is_conversation(value: Any) -> bool:
    from mmsp_nb.conversation import Conversation

    return isinstance(value, Conversation)


def _said(error: Exception) -> str:
    """What is wrong with a model, in the words of the magics."""
    return str(error).replace(
        "any other needs client_type=, for instance", "any other needs %%mmsp --client-type, as in"
    )
