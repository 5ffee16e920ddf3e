"""What is sent of a history that models of other vendors wrote part of.

`mmsp_nb.protocol.repairs` does the mending; here is decided what of, and that it is done once: a history
grows at its end, so what was mended for one request is kept for the next.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from mmsp_nb.protocol.repairs import RepairReport, Traits, repair
from mmsp_nb.protocol.validation import check_messages

__all__ = ["Mender"]

_NOTHING = RepairReport()


class Mender:
    """Mends histories for one model.

    A message whose ``origin`` is another than this model's is foreign. Up to the last foreign message the
    list is mended; what comes after it was made here or is new, and is sent as it is. A message without an
    origin counts as this model's own, unless foreign ones come after it. So a history without foreign
    messages passes untouched, and is refused where it is wrong.

    Args:
        origin: of the messages that this model writes; see `mmsp_nb.providers.traits.origin`.
        traits: what its vendor demands.
    """

    def __init__(self, origin: str, traits: Traits) -> None:
        self.origin = origin
        self._traits = traits
        # messages as given and as mended, and what was done
        self._kept: tuple[list[Any], list[Any], RepairReport] = ([], [], _NOTHING)
        # messages that were looked at, and where the last foreign one is
        self._seen: tuple[list[Any], int] = ([], -1)

    def __call__(self, messages: list[Any], *, keep: bool = False) -> tuple[list[Any], RepairReport]:
        """The messages to send, and what was done to them. Without foreign messages it is the same list.

        Args:
            messages: never modified.
            keep: remember the outcome for the next call. Only for messages that nobody modifies.

        Raises:
            InvalidMessageError: a message that would have to be looked at is not valid.
        """
        end = self._end(messages, keep)
        if end == 0:
            return messages, _NOTHING
        given, mended, report = self._kept
        if not (keep and len(given) == end and _begins_with(messages, given)):
            given = messages[:end]
            mended, report = self._mended(given, whole=end == len(messages))
            if keep:
                self._kept = given, mended, report
        return [*mended, *messages[end:]], report

    def forget(self) -> None:
        """Let go of the messages that were kept."""
        self._kept = ([], [], _NOTHING)
        self._seen = ([], -1)

    def _end(self, messages: list[Any], keep: bool) -> int:
        """How many of the messages, from the first on, have to be looked at."""
        at = self._last_foreign(messages, keep)
        if at < 0:
            return 0
        # the message after it may have to answer its calls, or to show its images
        roles = [message.get("role") for message in messages[at : at + 2] if isinstance(message, dict)]
        return at + 2 if roles == ["assistant", "user"] else at + 1

    def _last_foreign(self, messages: list[Any], keep: bool) -> int:
        seen, at = self._seen if keep and _begins_with(messages, self._seen[0]) else ([], -1)
        fresh, own = messages[len(seen) :], (None, self.origin)
        if not all(message.__class__ is dict and message.get("origin") in own for message in fresh):
            places = range(len(messages) - 1, len(seen) - 1, -1)
            at = next((place for place in places if self._is_foreign(messages[place])), at)
        if keep:
            self._seen = list(messages), at
        return at

    def _mended(self, messages: list[Any], *, whole: bool) -> tuple[list[Any], RepairReport]:
        check_messages(messages)
        foreign = {index for index, message in enumerate(messages) if self._is_foreign(message)}
        last = max(foreign)
        own = {index for index, message in enumerate(messages) if index > last or message.get("origin") == self.origin}
        return repair(messages, traits=self._traits, foreign=foreign, own=own, whole=whole)

    def _is_foreign(self, message: Any) -> bool:
        origin = message.get("origin") if isinstance(message, dict) else None
        return origin is not None and origin != self.origin and isinstance(origin, str)


def _begins_with(messages: list[Any], known: list[Any]) -> bool:
    return len(known) <= len(messages) and all(map(is_, known, messages))
