"""`Keeping`: what a conversation can do to outlive its process. The formats are in `files` and `exports`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation

__all__ = ["Keeping"]


class Keeping:
    """Files of a conversation."""

    _absent: tuple[str, ...] = ()
    """Tools that the file named and that are not here: the next file names them again."""

    def save(self, path: str | Path, *, times: bool = False, events: bool = False) -> Path:
        """Write the conversation, all branches and hidden turns included, to a file that `load` reads.

        The file is JSON, one record a line with sorted keys, so that versions of it can be compared. It is replaced
        as a whole or not at all.

        Args:
            path: For instance ``talk.jsonl``.
            times: Keep when things happened too; without them the same conversation gives the same file.
            events: Keep the events of the answers with their times too, as they came: ``turn.log``.
        """
        from mmsp_nb.files import save

        return save(cast("Conversation", self), path, times=times, events=events)

    @classmethod
    def load(cls, path: str | Path, *, tools: Any = None, client: Any = None, **client_options: Any) -> Conversation:
        """Read what `save` wrote, or a trace file; see `mmsp_nb.load`."""
        from mmsp_nb.files import load

        return load(path, tools=tools, client=client, **client_options)

    def export(self, path: str | Path | None = None, *, format: str | None = None) -> str:
        """The branch in use as a document: ``markdown``, ``html``, ``notebook`` or ``python`` code that asks it again.

        Args:
            path: Where to write it; None only returns it.
            format: Default goes by the ending of ``path``: .md, .html, .ipynb, .py.
        """
        from mmsp_nb.exports import export

        return export(cast("Conversation", self), path, format=format)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Conversation holds a client with its key, so it cannot be pickled: chat.save(path) keeps it, "
            "mmsp_nb.load(path) reads it, and copy.copy(chat) or chat.fork() is another one"
        )

    def browse(self) -> Any:
        """Look into the conversation: a widget for a notebook, live, with all that can be done to its turns."""
        from importlib import import_module

        return import_module("mmsp_nb.notebook.inspector").inspect(self)
