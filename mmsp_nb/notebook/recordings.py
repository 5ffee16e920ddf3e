"""``%mmsp record`` and ``%mmsp replay``: one recording for everything that the notebook asks."""

from __future__ import annotations

import os
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
    _check_writable(Path(file).expanduser())
    try:
        cassette = Cassette(file, mode)
    except (OSError, ValueError) as error:
        raise OptionError(str(error)) from None
    _use(chats, cassette)
    if mode == "all":
        return f"recording to {cassette.path}; %mmsp record off ends it, %mmsp replay {cassette.path} plays it"
    if not len(cassette):
        return f"recording to {cassette.path}, which holds nothing yet; %mmsp record off ends it"
    rest = "what is not in it is recorded" if mode == "new" else "anything else is an error"
    return f"replaying {cassette.path}: {_answers(len(cassette))}; {rest}"


def replay(chats: Chats, file: str | None = None, speed: str | None = None) -> str:
    """Answer from a recording from now on; without a file say what was not asked for yet; ``off`` ends it."""
    from mmsp_nb.transport.cassette import Cassette

    if file is None or file.lower() in OFF:
        return _stop_or_tell(chats, file)
    try:
        pace = None if speed is None else float(speed.rstrip("x"))
    except ValueError:
        raise OptionError(f"the speed of a replay is a number such as 1 (as recorded) or 2, not {speed!r}") from None
    if Path(file).expanduser().is_dir():
        raise OptionError(f"{file} is a folder, and no recording")
    try:
        cassette = Cassette(file, "none", speed=pace)
    except (OSError, ValueError) as error:
        raise OptionError(str(error)) from None
    _use(chats, cassette)
    return f"replaying {cassette.path}: {_answers(len(cassette))}, without a key and a network"


def _check_writable(path: Path) -> None:
    """OptionError for a file that could not be written: it is said now, and not when an answer is lost to it."""
    if path.is_dir():
        raise OptionError(f"{path} is a folder: name a file in it, such as {path / 'answers.jsonl'}")
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if (there != path.absolute() and not there.is_dir()) or not os.access(there, os.W_OK):
        raise OptionError(f"{path} cannot be written: {there} does not allow it")


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
