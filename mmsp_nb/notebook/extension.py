"""What is registered in a shell, and how it is taken back."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from mmsp_nb import hosts

from . import displays, failures
from .host import Cells, NotebookHost
from .magics import MMSPMagics
from .rewriting import NAME, Questions, Transformer, Verbatim

__all__ = ["Extension"]


KEPT = "_mmsp_nb_before"
"""Where a shell keeps the extension that was unloaded: the chats and exceptions that the next one goes on with."""


class Extension:
    """The extension in one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        before: Extension | None = getattr(shell, KEPT, None)
        self.cells: Cells = Cells(shell) if before is None else before.cells
        self.cells.register()
        self.magics = MMSPMagics(shell, parent=shell)
        if before is not None:
            self.magics.take_over(before.magics)
            delattr(shell, KEPT)
        self.magics.connect(self.cells)
        shell.register_magics(self.magics)  # which also makes them configurable
        displays.register(shell)
        failures.register()
        self._transformer = Transformer(shell, self.cells)
        shell.input_transformers_post.append(self._transformer)
        self._questions = Questions()
        shell.input_transformers_cleanup.append(self._questions)
        self._verbatim = Verbatim()
        shell.input_transformers_cleanup.insert(0, self._verbatim)
        self._host = NotebookHost(shell, self.cells, lambda: self.magics.live)
        self._previous = hosts.register(self._host)
        self._completer = _complete(shell, self.magics)
        print(self.magics.greeting())

    def close(self) -> None:
        """Undo everything; what is not there any more is not missed. What was said waits at the shell for the next."""
        shell = self._shell
        setattr(shell, KEPT, self)
        self.cells.unregister()
        displays.unregister(shell)
        failures.unregister()
        with contextlib.suppress(ValueError):
            shell.configurables.remove(self.magics)
        with contextlib.suppress(ValueError):
            shell.input_transformers_post.remove(self._transformer)
        for ours in (self._questions, self._verbatim):
            with contextlib.suppress(ValueError):
                shell.input_transformers_cleanup.remove(ours)
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(NAME, None)
        shell.magics_manager.registry.pop("MMSPMagics", None)
        if hosts.current() is self._host:
            hosts.register(self._previous)
        if self._completer is not None:
            with contextlib.suppress(ValueError, AttributeError):
                shell.Completer.custom_matchers.remove(self._completer)
        registry = getattr(sys.modules.get("mmsp_nb.tools"), "registry", None)
        if registry is not None and registry.lookup == shell.user_ns.get:
            registry.lookup = None


def _complete(shell: Any, magics: MMSPMagics) -> Any:
    try:
        from .completion import matcher
    except ImportError:  # an IPython without matchers
        return None
    ours = matcher(shell, magics)
    shell.Completer.custom_matchers.append(ours)
    return ours
