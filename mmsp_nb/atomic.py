"""Files that are written as a whole or not at all, and records that are."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from mmsp_nb.protocol.errors import MMSPError

__all__ = ["NotWrittenError", "append", "replace"]


class NotWrittenError(MMSPError, OSError):
    """A file could not be written; what stood in it before is unchanged. Has ``filename``, ``errno``, ``strerror``."""

    def __init__(self, message: str = "", *, cause: OSError | None = None, path: Path | None = None) -> None:
        MMSPError.__init__(self, message)
        if cause is not None:
            self.errno, self.strerror, self.filename = cause.errno, cause.strerror, str(path)

    def __str__(self) -> str:
        return self.message


def replace(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file: whoever reads it sees the old one or the new one, and a failure leaves the old one.

    What a link points to is written; a pipe or a device is written to as it is, and never replaced.

    Args:
        private: only the user may read it, and a link is replaced by it. Otherwise it keeps the mode it had, and a
            new one gets the usual mode.

    Raises:
        NotWrittenError: for want of space, permission or a folder.
    """
    target = path if private else Path(os.path.realpath(path))
    try:
        if not private and _is_stream(target):
            target.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}-")
    except OSError as error:
        raise _failed(path, error) from None
    temporary = Path(name)
    try:
        with open(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if not private:
            temporary.chmod(_mode(target))
        temporary.replace(target)
    except OSError as error:
        raise _failed(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def append(path: Path, data: bytes, *, at: int | None = None) -> None:
    """Write ``data`` at the end of a file that exists, in one go; what was written of it in vain is taken back.

    Args:
        at: Where the end is, if not there: what lies behind is what an earlier process has left half written.

    Raises:
        NotWrittenError: for want of space or permission.
    """
    try:
        with path.open("r+b", buffering=0) as out:
            end = out.seek(0, os.SEEK_END)
            if at is not None and at < end:
                end = out.truncate(at)
                out.seek(end)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[out.write(rest) :]
            except OSError:
                with suppress(OSError):
                    out.truncate(end)
                raise
    except OSError as error:
        raise _failed(path, error) from None


def _is_stream(path: Path) -> bool:
    with suppress(OSError):
        mode = path.stat().st_mode
        return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
    return False


def _mode(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _failed(path: Path, error: OSError) -> NotWrittenError:
    why = error.strerror or str(error) or type(error).__name__
    return NotWrittenError(f"{path} was not written: {why}. What was there before is unchanged", cause=error, path=path)
