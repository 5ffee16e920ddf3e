"""The models the package knows: windows, modalities, list prices. Hints, not promises: see ``models.json``.

Any other model works too; it only has no price and no window here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from mmsp_nb.protocol.errors import UnsupportedParameterError

__all__ = ["CNY_PER_USD", "Model", "find", "list_supported_models", "models", "platforms", "search"]

CNY_PER_USD = 7
"""The fixed rate between the two currencies of the list."""

_MODALITIES = {"T": "Text", "I": "Image", "V": "Video", "A": "Audio", "E": "Embed"}


@dataclass(frozen=True, slots=True)
class Model:
    """One model on one platform. Prices are list prices for a million tokens, in ``currency``."""

    model: str
    platform: str
    base_url: str
    client: str
    """The client type: with ``model`` and ``base_url`` it makes a constructor call."""
    context_window: int | None
    """In tokens; None when not known."""
    input_modalities: tuple[str, ...]
    output_modalities: tuple[str, ...]
    currency: str | None
    """``USD`` or ``CNY``; None without prices."""
    prompt_price: float | None
    response_price: float | None
    """For ``response_tokens`` and ``thoughts_tokens``."""
    cached_price: float | None

    def pricing(self, currency: str | None = None) -> dict[str, Any] | None:
        """Price of each usage field, converted at the fixed rate when asked for; None when not known."""
        if self.prompt_price is None:
            return None
        currency = currency or self.currency
        rate = 1.0 if currency == self.currency else CNY_PER_USD if currency == "CNY" else 1 / CNY_PER_USD
        prices = {"prompt_tokens": self.prompt_price, "thoughts_tokens": self.response_price}
        prices |= {"response_tokens": self.response_price, "cached_tokens": self.cached_price}
        return {"currency": currency} | {k: round(p * rate, 6) for k, p in prices.items() if p is not None}


def models(platform: str | None = None) -> tuple[Model, ...]:
    """All models, or those of a platform (its name or base URL), in the list's order."""
    if platform is None:
        return _all()
    wanted = platform.rstrip("/").lower()
    return tuple(row for row in _all() if wanted in (row.platform.lower(), row.base_url.rstrip("/").lower()))


def platforms() -> dict[str, str]:
    """Name of each platform -> its base URL."""
    return {row.platform: row.base_url for row in _all()}


def find(model: str, platform: str | None = None) -> Model | None:
    """The model of this id (in any case), on this platform (name or base URL) or else the first that has it."""
    return next((row for row in models(platform) if row.model.lower() == model.lower()), None)


def search(text: str) -> list[Model]:
    """The models whose id, platform and client type together contain every word of ``text``."""
    words = text.lower().split()
    return [row for row in _all() if all(w in f"{row.model} {row.platform} {row.client}".lower() for w in words)]


def list_supported_models(currency: str = "USD") -> list[dict[str, Any]]:
    """The list as plain dicts, with prices in ``USD`` or ``CNY``."""
    if currency not in ("USD", "CNY"):
        raise UnsupportedParameterError(f"currency must be 'USD' or 'CNY', not {currency!r}", parameter="currency")
    return [_plain(row, currency) for row in _all()]


def _plain(row: Model, currency: str) -> dict[str, Any]:
    plain: dict[str, Any] = {"model": row.model, "base_url": row.base_url, "client": row.client}
    plain |= {"input_modalities": list(row.input_modalities), "output_modalities": list(row.output_modalities)}
    extra = {"context_window": row.context_window, "pricing": row.pricing(currency)}
    return plain | {key: value for key, value in extra.items() if value is not None}


@cache
def _all() -> tuple[Model, ...]:
    data = json.loads(resources.files(__package__).joinpath("models.json").read_text(encoding="utf-8"))
    return tuple(
        _model(section["platform"], section["base_url"], row)
        for section in data["platforms"]
        for row in section["models"]
    )


def _model(platform: str, base_url: str, row: Sequence[Any]) -> Model:
    name, client, window, reads, writes, currency, *prices = row
    inputs, outputs = (tuple(_MODALITIES[letter] for letter in letters) for letters in (reads, writes))
    return Model(name, platform, base_url, client, window, inputs, outputs, currency, *prices)
