"""``%mmsp record`` and ``%mmsp replay``: one recording for everything that the notebook asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .chats import Chats
from .options import OptionError

if TYPE_CHECKING:
    from mmsp_nb.transport.cassette import Cassette

__all__ = ["candidates", "record", "replay", "replaying"]

OFF = ("off", "stop", "none")
SHOWN = 10
"""Unused answers that are listed at most."""


def record(chats: Chats, file: str | None = None, mode: str = "all") -> str:
    """Record from now on; without a file say what is recorded; ``off`` ends it."""
    from mmsp_nb.transport.cassette import MODES, Cassette

    if file is None or file.lower() in OFF:
        return _stop_or_tell(chats, file)
    if mode not in MODES or mode == "none":
        from mmsp_nb.protocol.suggestions import did_you_mean

        modes = [name for name in MODES if name != "none"]
        raise OptionError(f"%mmsp record cannot use {mode!r}{did_you_mean(mode, modes)}: {', '.join(modes)}")
    try:
        cassette = Cassette(file, mode)
    except (OSError, ValueError) as error:
        raise OptionError(str(error)) from None
    _use(chats, cassette)
    if mode == "all":
        return f"recording to {cassette.path}; %mmsp record off ends it, %mmsp replay {cassette.path} plays it"
    return f"recording {cassette.path} ({mode})"


def replay(chats: Chats, file: str | None = None, speed: str | None = None) -> str:
    """Answer from a recording from now on; without a file say what was not asked for yet; ``off`` ends it."""
    from mmsp_nb.transport.cassette import Cassette

    if file is None or file.lower() in OFF:
        return _stop_or_tell(chats, file)
    try:
        pace = None if speed is None else float(speed.rstrip("x"))
    except ValueError:
        raise OptionError(f"the speed of a replay is a number such as 1 (as recorded) or 2, not {speed!r}") from None
    try:
        cassette = Cassette(file, "none", speed=pace)
    except (OSError, ValueError) as error:
        raise OptionError(str(error)) from None
    _use(chats, cassette)
    return f"replaying {cassette.path}: {_answers(len(cassette))}, without a key and a network"


def replaying() -> bool:
    """Whether answers come out of a recording, all at once: then nobody watches them come."""
    from mmsp_nb.protocol.errors import TransportError
    from mmsp_nb.transport.cassette import current

    try:
        cassette = current()
    except TransportError:
        return False
    return cassette is not None and cassette.replays and not cassette.speed


def _use(chats: Chats, cassette: Cassette | None) -> None:
    from mmsp_nb.transport.cassette import use

    use(cassette)
    chats.reconnect()


def _stop_or_tell(chats: Chats, word: str | None) -> str:
    from mmsp_nb.transport.cassette import current

    cassette = current()
    if cassette is None:
        return "nothing is recorded or replayed: %mmsp record FILE, %mmsp replay FILE"
    if word is not None:
        _use(chats, None)
        return f"done with {cassette.path}: {_answers(len(cassette))}"
    if cassette.records:
        return f"recording {cassette.path} ({cassette.mode}): {_answers(len(cassette))} so far"
    lines = [f"replaying {cassette.path}: {_answers(len(cassette))}"]
    unused = cassette.unused
    lines += [f"not asked for yet: {line}" for line in unused[:SHOWN]]
    if len(unused) > SHOWN:
        lines.append(f"and {len(unused) - SHOWN} more")
    return "\n".join(lines)


def _answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"


def candidates() -> list[str]:
    """Recordings in the working folder, for completion."""
    return sorted(str(path) for path in Path().glob("*.jsonl"))
