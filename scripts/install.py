"""Makes the virtual environment and installs this project in it, once: `install.py [--venv DIR] GROUP`.

GROUP is one of

* ``lab``: JupyterLab, the package and the runtime of the local model (``make lab``, ``make demo``);
* ``test``: that, and all that the checks and the tests need;
* ``browser``: a Chromium for the browser tests, from Debian's packages when we may install them.

A second run does nothing: a stamp in the environment holds a hash of pyproject.toml and of the Python version.
Only the standard library is used, for this runs before anything is installed. Exit status 2 comes with one line
that says what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = {"lab": "lab", "test": "lab,test"}
DOWNLOAD = {"lab": "140 MB", "test": "220 MB"}
LOCAL = "local"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|Max retries exceeded"
    r"|name resolution|Network is unreachable|Connection (?:broken|refused|reset)",
)


class Missing(Exception):
    """Something the machine lacks; the message says what, and what to do."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the virtual environment and install the project.")
    parser.add_argument("group", choices=[*EXTRAS, "browser"])
    parser.add_argument("--venv", default=".venv", type=Path)
    options = parser.parse_args(argv)
    try:
        if options.group == "browser":
            browser()
        else:
            install(options.group, (ROOT / options.venv).absolute())
    except Missing as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


# --- the environment -----------------------------------------------------------------------------------------------


def install(group: str, venv: Path) -> None:
    """Install the package (editable) with the extras of ``group`` into ``venv``, unless that is done already."""
    python = environment(venv)
    stamp = venv / f".installed-{group}"
    wanted = fingerprint(python)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    started = time.monotonic()
    extras = EXTRAS[group]
    say(f"installing the package with the extras {extras},{LOCAL} (the first time some {DOWNLOAD[group]} of downloads)")
    try:
        pip(python, f"{ROOT}[{extras},{LOCAL}]")
    except NoWheel:
        say("there is no runtime of the local model for this machine; the demo model takes its place")
        pip(python, f"{ROOT}[{extras}]")
    stamp.write_text(wanted)
    say(f"installed in {time.monotonic() - started:.0f} s")


def environment(venv: Path) -> Path:
    """The interpreter of ``venv``, which is made when it is not there or no longer works."""
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    version = version_of(python)
    given = bool(os.environ.get("PYTHON"))
    if version is not None and version >= (3, 11) and not (given and version != sys.version_info[:2]):
        return python
    say(f"making {venv.name} with Python {sys.version.split()[0]}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True)
    if made.returncode or version_of(python) is None:
        reason = (made.stdout + made.stderr).strip()
        if "No module named" in reason or "ensurepip" in reason:
            short = f"python{sys.version_info.major}.{sys.version_info.minor}"
            raise Missing(f"{sys.executable} has no venv module: install it (Debian: apt install {short}-venv).")
        raise Missing(f"no virtual environment could be made at {venv}: {reason[-300:] or 'no reason given'}")
    return python


def version_of(python: Path) -> tuple[int, int] | None:
    """(major, minor) of an interpreter that has pip, or None."""
    code = "import sys, pip; print(*sys.version_info[:2])"
    try:
        ran = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    numbers = ran.stdout.split()
    return (int(numbers[0]), int(numbers[1])) if ran.returncode == 0 and len(numbers) == 2 else None


def fingerprint(python: Path) -> str:
    """What the installation depends on: the project's file and place, and the interpreter."""
    text = (ROOT / "pyproject.toml").read_bytes() + f"{ROOT}{version_of(python)}".encode()
    return hashlib.sha256(text).hexdigest()


# --- pip, with a progress that can be read ---------------------------------------------------------------------------


class NoWheel(Exception):
    """The local model's runtime has no wheel for this machine."""


def pip(python: Path, requirement: str) -> None:
    """``pip install -e requirement``, showing what it is at; raises NoWheel or Missing."""
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--only-binary",
        "xllamacpp",
        "--no-input",
        *progress_option(python),
    ]
    command += ["--editable", requirement]
    log: list[str] = []
    bar = Progress()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            log.append(line)
            bar.feed(line)
    bar.end()
    if process.returncode == 0:
        return
    text = "".join(log)
    if UNREACHABLE.search(text):
        raise Missing("The package index cannot be reached: check the network, or pip's index and proxy settings.")
    if LOCAL in requirement and "No matching distribution found for xllamacpp" in text:
        raise NoWheel
    errors = [line.strip() for line in log if "ERROR" in line or "error:" in line]
    raise Missing(f"pip could not install the project: {' '.join(errors)[-600:] or text[-600:]}")


def progress_option(python: Path) -> list[str]:
    """Numbers that a program can read are there since pip 24.1."""
    ran = subprocess.run([str(python), "-c", "import pip; print(pip.__version__)"], capture_output=True, text=True)
    numbers = [int(part) for part in re.findall(r"\d+", ran.stdout)[:2]]
    return ["--progress-bar", "raw"] if numbers >= [24, 1] else ["--progress-bar", "off"]


class Progress:
    """pip's output as one line that changes in place (in a terminal), or a line every ten seconds (elsewhere)."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        self.packages = 0
        self.doing = "asking the package index"
        self.shown = time.monotonic()

    def feed(self, line: str) -> None:
        words = line.split()
        if not words:
            return
        if words[0] == "Collecting":
            self.packages += 1
            self.doing = f"looking at {words[1]}"
        elif words[0] in ("Downloading", "Using") and len(words) > 1:
            size = re.search(r"\(([\d.]+ \w+)\)", line)
            name = next((word for word in words if word.endswith((".whl", ".tar.gz"))), words[1])
            self.doing = f"{words[0].lower()} {name.rsplit('/', 1)[-1].split('-')[0]}{f' ({size[1]})' if size else ''}"
        elif words[0] == "Progress" and len(words) == 4 and words[3].isdigit() and int(words[3]):
            share = 100 * int(words[1]) // int(words[3])
            self.doing = f"{self.doing.split(': ')[0]}: {share} %"
        elif "Retrying" in words:
            self.doing = "waiting for the package index, trying again"
        elif words[:2] == ["Installing", "collected"]:
            self.doing = "unpacking"
            self.shown = 0  # it takes a while without a word: show that at once
        else:
            return
        now = time.monotonic()
        if now - self.shown >= (0.1 if self.terminal else 10):
            self.shown = now
            text = f"  {self.packages} packages, {self.doing}"
            print(f"\r\033[K{text[:100]}" if self.terminal else text, end="" if self.terminal else "\n", flush=True)

    def end(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", flush=True)


# --- the browser ----------------------------------------------------------------------------------------------------


def browser() -> None:
    """See to a Chromium for the tests. Without one they are skipped, loudly; where CI is set that is a failure."""
    if find_chromium():
        return
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        say("NO CHROMIUM: the browser tests will be skipped. Install chromium, or name one with CHROMIUM=/path.")
        return
    say("installing Chromium for the browser tests (Debian's package)")
    apt_get("update")
    for package in ("chromium", "chromium-browser"):
        if apt_get("install", "-y", "--no-install-recommends", package, "fonts-dejavu-core") and find_chromium():
            return
    say("NO CHROMIUM: apt-get could not install it, the browser tests will be skipped.")


def apt_get(*arguments: str) -> bool:
    """Run apt-get without a word; whether it succeeded."""
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    ran = subprocess.run(["apt-get", *arguments], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    return ran.returncode == 0


def find_chromium() -> str | None:
    """The Chromium to test with: $CHROMIUM, else the first usual name on the path."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for path in map(shutil.which, CHROMIUM_NAMES) if path), None)


def say(text: str) -> None:
    print(f"mmsp_nb: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
