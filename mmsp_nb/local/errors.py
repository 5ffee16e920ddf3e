"""The one error of the local models."""

from __future__ import annotations

from mmsp_nb.protocol.errors import MMSPError

__all__ = ["LocalModelError"]


class LocalModelError(MMSPError):
    """The local model cannot be used; the message is one line and says what to do about it."""
