"""What it costs to begin: imports and clients in a fresh interpreter, the extension in a running IPython."""

from __future__ import annotations

from rig import Bench, Figure, Section, child_cpu, interleaved
from streaming import DIALECTS

PLACE = 10

_PEER = "import httpx, pydantic"
_CLIENT = "from mmsp_nb import AutoLLMClient; AutoLLMClient('m', 'k', 'http://127.0.0.1:9/v1', {client_type!r})"
_SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell('1 + 1', silent=True)
"""


def run(bench: Bench) -> list[Section]:
    rounds = bench.rounds(7)
    return [
        Section(
            "Start",
            "CPU of a fresh interpreter, the bare interpreter's taken off. Peer: `import httpx, pydantic`; for the "
            "extension, the start of the IPython that it is loaded into.",
            imports(rounds) + extension(rounds),
        )
    ]


def imports(rounds: int = 7) -> list[Figure]:
    """A fresh interpreter builds a client; beside it one that only imports httpx and pydantic.

    The interpreter's own start is taken off both.
    """
    codes = {"bare": "pass", "peer": _PEER, "mmsp_nb": "import mmsp_nb"}
    for dialect, (client_type, _) in DIALECTS.items():
        codes[dialect] = _CLIENT.format(client_type=client_type)
    found = interleaved({name: lambda code=code: child_cpu(code) for name, code in codes.items()}, rounds)
    bare, peer = found.pop("bare"), found.pop("peer")
    names = {"mmsp_nb": "`import mmsp_nb`"}
    return [
        Figure(names.get(name, f"import and a client, {name}"), cpu - bare, peer - bare, "ms", 1.5)
        for name, cpu in found.items()
    ]


def extension(rounds: int = 7) -> list[Figure]:
    """``%load_ext mmsp_nb`` in an IPython that runs already, beside the start of that IPython."""
    codes = {
        "bare": "pass",
        "shell": _SHELL,
        "loaded": _SHELL + "shell.run_line_magic('load_ext', 'mmsp_nb')",
    }
    found = interleaved({name: lambda code=code: child_cpu(code) for name, code in codes.items()}, rounds)
    return [
        Figure("`%load_ext mmsp_nb`", found["loaded"] - found["shell"], found["shell"] - found["bare"], "ms", most=100)
    ]
