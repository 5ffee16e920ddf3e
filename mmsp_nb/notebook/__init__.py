"""What a person sees: the magics, the live output, the host that draws. Only here is IPython imported.

``load_ipython_extension`` is what ``%load_ext mmsp_nb`` calls. Importing this package is light; the modules
below it load what they need when it is needed.
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_loaded: dict[int, Any] = {}


def load_ipython_extension(shell: Any) -> None:
    """Register the magics, the transformer and the host that draws; print one line that says what answers."""
    from .extension import Extension

    if id(shell) in _loaded:
        unload_ipython_extension(shell)
    _loaded[id(shell)] = Extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take back all of it. Conversations that the user holds in variables stay usable."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.close()
