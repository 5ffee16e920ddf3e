"""Makes an environment for a tool that must not be in the project's own: ``side_environment.py NAME REQUIREMENT ...``.

It is ``.venvs/NAME``; ``.`` stands for this package, editable. A second run does nothing.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(name: str, *requirements: str) -> int:
    folder = ROOT / ".venvs" / name
    stamp, wanted = folder / ".installed", "\n".join(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    print(f"making .venvs/{name} with {', '.join(requirements)}", flush=True)
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    given = [part for each in requirements for part in (["--editable", str(ROOT)] if each == "." else [each])]
    done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *given], check=False)
    if done.returncode == 0:
        stamp.write_text(wanted)
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    raise SystemExit(main(*sys.argv[1:]))
