"""What a synchronous tool with ``capture=True`` prints, where no notebook records it."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import TYPE_CHECKING, Any

from mmsp_nb.masking import mask_keys
from mmsp_nb.tools.views import cut

if TYPE_CHECKING:
    from mmsp_nb.tools.calling import PreparedCall, ToolOutcome

__all__ = ["run_captured", "with_printed"]


class _Both(io.TextIOBase):
    """Writes to a stream, and keeps a copy."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.copy = io.StringIO()

    def write(self, text: str) -> int:
        self.copy.write(text)
        written: int = self._stream.write(text)
        return written

    def flush(self) -> None:
        self._stream.flush()


def run_captured(call: PreparedCall) -> ToolOutcome:
    """`PreparedCall.run`; what is printed meanwhile is shown as ever, and joins the result if the tool wants that."""
    if call.tool is None or not call.tool.capture:
        return call.run()
    both = _Both(sys.stdout)
    with contextlib.redirect_stdout(both):
        outcome = call.run()
    outcome.text = with_printed(outcome.text, both.copy.getvalue())
    return outcome


def with_printed(text: str, printed: str) -> str:
    """The text of a result, and below it what the tool has printed: bounded, without keys."""
    printed = cut(mask_keys(printed.strip()))
    return f"{text}\n\nPrinted:\n{printed}" if printed else text
