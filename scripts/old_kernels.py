"""Makes environments with older kernels, beside the one for development: `old_kernels.py [NAME ...]`.

NAME is one of

* ``ipykernel629``: the oldest ipykernel that JupyterLab is supported with;
* ``ipython734``: the IPython and the kernel that Colab has.

They go to ``.venvs/NAME``, with this package, editable. A second run does nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = {
    "ipykernel629": ("ipykernel==6.29.5",),
    # a newer traitlets and jupyter-client are what pip would take; they run with it
    "ipython734": ("ipython==7.34.0", "ipykernel==6.17.1", "ipywidgets==7.7.1", "setuptools<81"),
}


def python_of(name: str) -> Path:
    """The interpreter of one of `KERNELS`, whether it is there or not."""
    folder = ROOT / ".venvs" / name
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def is_made(name: str) -> bool:
    """Whether the environment is there and complete."""
    stamp = ROOT / ".venvs" / name / "installed.txt"
    return stamp.exists() and stamp.read_text() == _wanted(name)


def make(name: str) -> None:
    """Make the environment, unless it is there."""
    if is_made(name):
        return
    python = python_of(name)
    print(f"making .venvs/{name} with {', '.join(KERNELS[name])}", flush=True)
    venv.create(ROOT / ".venvs" / name, with_pip=True, clear=True)
    command = [python, "-m", "pip", "install", "--quiet", "--no-input", *KERNELS[name], "--editable", ROOT]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise SystemExit(f"pip could not install {name}: {' '.join(errors)[-600:] or done.stdout[-600:]}")
    (ROOT / ".venvs" / name / "installed.txt").write_text(_wanted(name))


def _wanted(name: str) -> str:
    return f"{sys.version_info[:2]} {KERNELS[name]} {ROOT}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(KERNELS)}")
    names = parser.parse_args().names or list(KERNELS)
    if unknown := set(names) - set(KERNELS):
        parser.error(f"there is no {', '.join(sorted(unknown))}: {', '.join(KERNELS)}")
    for name in names:
        make(name)


if __name__ == "__main__":
    main()
