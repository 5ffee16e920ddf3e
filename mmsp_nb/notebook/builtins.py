"""The tools of `mmsp_nb.tools.builtin` for this kernel: its variables, its code, the notebook's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from mmsp_nb.tools import Tool
from mmsp_nb.tools.builtin import code_tool, file_tools, namespace_tools

__all__ = ["BUILTIN", "find"]

BUILTIN = ("variables", "look_at", "run_code", "list_files", "read_file")
"""The names under which ``%mmsp tools add`` knows them."""


def find(name: str) -> Tool | None:
    """The built-in tool of that name for the running shell, or None."""
    if name not in BUILTIN:
        return None
    shell: Any = get_ipython()
    tools = [*namespace_tools(shell.user_ns, hidden=lambda each: _is_of_the_shell(shell, each)), code_tool(_run)]
    return next(tool for tool in [*tools, *file_tools(Path.cwd())] if tool.name == name)


def _is_of_the_shell(shell: Any, name: str) -> bool:
    """Whether IPython has put it there: In, Out, exit, display."""
    hidden = shell.user_ns_hidden
    return name in hidden and hidden[name] is shell.user_ns.get(name)


def _run(code: str) -> Any:
    """Run ``code`` like a cell of its own; what it shows is shown where the tool was called."""
    shell: Any = get_ipython()
    result = shell.run_cell(code, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise error
    return result.result
