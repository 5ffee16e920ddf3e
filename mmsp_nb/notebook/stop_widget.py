"""The widget behind the Stop buttons. It has no view; see `stopping`."""

from __future__ import annotations

from collections.abc import Callable

import anywidget
import traitlets

from .inspector import static_text

__all__ = ["StopButtons"]


class StopButtons(anywidget.AnyWidget):
    """What runs, for the page.

    Attributes:
        kernel: The id under which the server knows this kernel.
        running: The running answers: their keys, each with its ``way`` to be stopped and the milliseconds to ``wait``.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    kernel = traitlets.Unicode().tag(sync=True)
    running = traitlets.Dict().tag(sync=True)

    def __init__(self, kernel: str, received: Callable[..., None]) -> None:
        super().__init__(_esm=static_text("stop.js"), _css=static_text("stop.css"), kernel=kernel)
        self.on_msg(received)
