"""The list of ``%mmsp models``: what there is, what it costs, and what can be used at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mmsp_nb.protocol.suggestions import did_you_mean

__all__ = ["MAX_MODELS", "models_page", "usable"]

MAX_MODELS = 40
"""Models that are listed at most."""


def models_page(wanted: str, environ: Mapping[str, str] = os.environ) -> str:
    """The models whose id, platform and client type hold the words of ``wanted``, the usable ones first.

    Keys are only looked for, never shown.
    """
    from mmsp_nb.providers import catalog

    found = catalog.search(wanted) if wanted else list(catalog.models())
    if not found:
        near = did_you_mean(wanted, [row.model for row in catalog.models()])
        return f"no model in the list matches {wanted!r}{near}; others work too, with --client-type TYPE"
    keys = {id(row): _key(row, environ) for row in found}
    found.sort(key=lambda row: not usable(row, environ))
    shown = found[:MAX_MODELS]
    table = [("model", "client type", "window", "key", "$ per million tokens, in · out")]
    table += [(row.model, row.client, _window(row), keys[id(row)], _prices(row)) for row in shown]
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[4]]) for line in table
    ]
    if not wanted:
        lines.append("demo and local need no key")
    if len(found) > len(shown):
        lines.append(f"and {len(found) - len(shown)} more: %mmsp models WORD")
    return "\n".join(line.rstrip() for line in lines)


def usable(row: Any, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment has the key of a model of the catalogue."""
    return _key(row, environ).startswith("✓")


def _key(row: Any, environ: Mapping[str, str]) -> str:
    """Whether the environment has what this model needs, and if not, what is missing."""
    from mmsp_nb.providers.vendors import VENDORS

    vendor = VENDORS[row.client]
    there = bool(environ.get(vendor.api_key_env, "").strip())
    endpoint = (environ.get(vendor.base_url_env) or vendor.default_base_url).rstrip("/")
    if endpoint != row.base_url.rstrip("/"):
        return f"{vendor.api_key_env} and {vendor.base_url_env} of {row.platform}"
    return f"✓ {vendor.api_key_env}" if there else f"needs {vendor.api_key_env}"


def _window(row: Any) -> str:
    window = row.context_window
    if window is None:
        return ""
    return f"{window / 1e6:.0f}M" if window >= 1_000_000 else f"{window // 1000}k"


def _prices(row: Any) -> str:
    prices = row.pricing("USD")
    if not prices:
        return "unknown"
    return f"{prices['prompt_tokens']:g} · {prices.get('response_tokens', 0):g}"
