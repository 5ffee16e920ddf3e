"""What a tool prints, displays and plots: shown in the cell as it comes, and kept for the model and for the record.

A copy is taken, nothing is swallowed: `sys.stdout`, `sys.stderr` and the shell's display publisher are wrapped while
tools run, and each asks a context variable which tool is running. So several tools at once, in the main thread, in a
thread of their own or on the event loop, are told apart. What a tool writes to the file descriptors themselves
(subprocesses, C code) goes past it into the cell.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from mmsp_nb.tools import ToolOutcome
from mmsp_nb.tools.capture import with_printed

from .shown import figure_text, text_of

__all__ = ["Sink", "recording", "suspended"]

MAX_TEXT = 20_000
"""Characters of a tool's output that a model gets to read when the tool returns nothing."""

MAX_IMAGES = 4

_current: ContextVar[Sink | None] = ContextVar("mmsp_nb_sink", default=None)


class Sink:
    """What one call wrote.

    Args:
        first: Called before the first thing is shown, on the thread that shows it: the line of the call has to be
            on the screen by then.
        hold: Keep everything back until `release`, because nobody watches.
    """

    def __init__(self, first: Callable[[], None] | None = None, *, hold: bool = False) -> None:
        self._first = first
        self.hold = hold
        self.wrote = False
        self._text: list[str] = []
        self._length = 0
        self.images: list[str] = []
        self._held: list[Callable[[], None]] = []

    @property
    def text(self) -> str:
        """What was printed, and what was displayed as text."""
        return "".join(self._text)

    def passes(self, again: Callable[[], Any], text: str, images: list[str]) -> bool:
        """Take a copy. False when it must not be shown now; then ``again`` shows it later."""
        if not self.wrote:
            self.wrote = True
            if self._first is not None and not self.hold:
                self._first()
        if self._length < MAX_TEXT:
            self._text.append(text[: MAX_TEXT - self._length])
            self._length += len(text)
        self.images += images[: MAX_IMAGES - len(self.images)]
        if self.hold:
            self._held.append(again)
        return not self.hold

    def note(self, text: str) -> None:
        """Add a word for the model about what was shown."""
        self._text.append(text[: max(MAX_TEXT - self._length, 0)])
        self._length += len(text)

    def release(self) -> None:
        """Show what was held back, in order."""
        self.hold = False
        held, self._held = self._held, []
        for again in held:
            again()

    def amend(self, outcome: ToolOutcome) -> None:
        """A tool that returned nothing has said what it had to say on the screen: then that is its result.

        One with ``capture=True`` has its output beside its result, also when it failed.
        """
        if outcome.ok and outcome.value is None and self.wrote:
            outcome.text = self.text.strip() or outcome.text
            outcome.images = outcome.images or list(self.images)
        elif outcome.tool is not None and outcome.tool.capture and self.wrote:
            outcome.text = with_printed(outcome.text, self.text)
            outcome.images += self.images[: MAX_IMAGES - len(outcome.images)]


class _Stream:
    """Stands for sys.stdout or sys.stderr while tools run."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> Any:
        sink = _current.get()
        if sink is None or not text or sink.passes(lambda: self._stream.write(text), text, []):
            return self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Tap:
    """The wrapped streams and publisher; they are in place while at least one tool runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._restore: list[Callable[[], None]] = []

    def open(self, shell: Any) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            for name in ("stdout", "stderr"):
                original = getattr(sys, name)
                ours = _Stream(original)
                setattr(sys, name, ours)
                self._restore.append(functools.partial(_put_back, name, ours, original))
            publisher = getattr(shell, "display_pub", None)
            if publisher is not None:
                own = publisher.__dict__.get("publish")
                publisher.publish = _publishing(publisher.publish)
                self._restore.append(lambda: _unwrap(publisher, own))

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for restore in self._restore:
                    restore()
                self._restore.clear()


def _put_back(name: str, ours: Any, original: Any) -> None:
    if getattr(sys, name) is ours:  # a tool may have replaced it for good
        setattr(sys, name, original)


def _unwrap(publisher: Any, own: Any) -> None:
    if own is None:
        with contextlib.suppress(AttributeError):
            del publisher.publish
    else:
        publisher.publish = own


def _publishing(original: Callable[..., Any]) -> Callable[..., Any]:
    def publish(data: Any, metadata: Any = None, **options: Any) -> Any:
        sink = _current.get()
        token = _current.set(None)  # in a terminal, publishing prints
        try:
            if sink is None or options.get("update"):
                return original(data, metadata, **options)
            text = f"{text_of(data)}\n"
            if not sink.passes(lambda: original(data, metadata, **options), text, _images(data)):
                return None
            return original(data, metadata, **options)
        finally:
            _current.reset(token)

    return publish


def _images(data: Any) -> list[str]:
    urls = []
    for kind in ("image/png", "image/jpeg"):
        value = data.get(kind)
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode("ascii")
        if isinstance(value, str) and value:
            urls.append(f"data:{kind};base64,{''.join(value.split())}")
    return urls[:1]


_tap = _Tap()


@contextlib.contextmanager
def recording(shell: Any, sink: Sink) -> Iterator[None]:
    """Within it, on this thread or task and those it starts with its context, output goes to ``sink`` as well."""
    _tap.open(shell)
    token = _current.set(sink)
    before = _open_figures()
    try:
        yield
    finally:
        _show_figures(before)
        _current.reset(token)
        _tap.close()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Within it nothing is recorded: for what we draw ourselves while a tool runs."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def _open_figures() -> set[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if pyplot is not None else set()


def _show_figures(before: set[int]) -> None:
    """Show the figures that the tool left open, now: the inline backend would show them at the end of the cell."""
    pyplot, matplotlib = sys.modules.get("matplotlib.pyplot"), sys.modules.get("matplotlib")
    if pyplot is None or matplotlib is None or "inline" not in str(matplotlib.get_backend()).lower():
        return
    from IPython.display import display

    for number in sorted(set(pyplot.get_fignums()) - before):
        figure = pyplot.figure(number)
        if figure.get_axes():
            display(figure)
            sink = _current.get()
            if sink is not None and (words := figure_text(figure)):
                sink.note(f"(on it: {words})\n")
        pyplot.close(figure)
