"""How a wire can be made to answer in a given form: found out by building a request, never by a list of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from mmsp_nb.protocol.errors import UnsupportedParameterError
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.providers.vendors import Vendor

__all__ = ["forcing", "takes_schema"]

_PROBE: list[UniMessage] = [{"role": "user", "content_items": [{"type": "text.done", "text": "?"}]}]


def takes_schema(vendor: Vendor, model: str, response_format: Mapping[str, Any]) -> bool:
    """Whether the wire has a mode of its own for ``response_format``."""
    if vendor.rule("schema_mode", model, True) is False:
        return False
    return _builds(vendor, model, {"response_format": dict(response_format)})


def forcing(vendor: Vendor, model: str, tools: Sequence[Any], name: str) -> str | list[str]:
    """The strongest ``tool_choice`` that makes the model call the tool ``name``, which is one of ``tools``.

    A model that has other tools as well has to be free to call those first.
    """
    wanted: list[str | list[str]] = ["required"] if len(tools) > 1 else [[name], "required"]
    for choice in wanted:
        if _builds(vendor, model, {"tools": list(tools), "tool_choice": choice}):
            return choice
    return "auto"


def _builds(vendor: Vendor, model: str, config: dict[str, Any]) -> bool:
    dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
    try:
        dialect.build(vendor, model, _PROBE, config)
    except UnsupportedParameterError:
        return False
    return True
