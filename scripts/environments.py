"""Makes the environments that must not be the project's own: ``environments.py NAME ...``.

They are ``.venvs/NAME``; `REQUIREMENTS` has their names. A second run does nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = {
    # the oldest ipykernel that JupyterLab is supported with
    "ipykernel629": (".", "ipykernel==6.29.5"),
    # the IPython and the kernel that Colab has, with the newer traitlets and jupyter-client that pip takes
    "ipython734": (".", "ipython==7.34.0", "ipykernel==6.17.1", "ipywidgets==7.7.1", "setuptools<81"),
    # the reference implementation of the protocol, a black box that results are compared with
    "reference": ("mmsp==0.5.6", "openai==3.57.0", "anthropic==2.14.0", "google-genai==3.6.1"),
    # what the benchmarks compare with beside it
    "peers": ("chatlas==0.23.0", "openai", "ipython"),
    "fuzz": (".", "atheris==3.0.0"),
}
"""What is installed in each; ``.`` is this package, editable."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, be it there or not."""
    return ROOT / ".venvs" / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def is_made(name: str) -> bool:
    """Whether the environment is there and complete."""
    stamp = _stamp(name)
    return stamp.exists() and stamp.read_text() == _wanted(name)


def make(name: str) -> Path:
    """Make the environment, unless it is there; its interpreter."""
    python, requirements = python_of(name), REQUIREMENTS[name]
    if is_made(name):
        return python
    print(f"making .venvs/{name} with {', '.join(requirements)}", file=sys.stderr, flush=True)
    venv.create(ROOT / ".venvs" / name, with_pip=True, clear=True)
    given = [part for each in requirements for part in (["--editable", str(ROOT)] if each == "." else [each])]
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-input", *given]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise SystemExit(f"pip could not install {name}: {' '.join(errors)[-600:] or done.stdout[-600:]}")
    _stamp(name).write_text(_wanted(name))
    return python


def _stamp(name: str) -> Path:
    return ROOT / ".venvs" / name / "installed.txt"


def _wanted(name: str) -> str:
    return f"{sys.version_info[:2]} {REQUIREMENTS[name]} {ROOT}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", metavar="NAME", choices=REQUIREMENTS, help=", ".join(REQUIREMENTS))
    for name in parser.parse_args().names:
        make(name)


if __name__ == "__main__":
    main()
