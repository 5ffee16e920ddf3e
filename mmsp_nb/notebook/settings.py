"""Settings from the environment and from ``[tool.mmsp_nb]`` in a ``pyproject.toml``.

One precedence, the first that says something wins: an option of the cell; ``%config MMSPMagics.x = ...``; a traitlets
config (a profile, ``--MMSPMagics.x=...``); the environment (``MMSP_NB_X``, for the model also ``MMSP_MODEL``); the
nearest ``pyproject.toml`` with such a table, from the working folder upwards; the default. Neither keys nor addresses
can be set in the file, so that a folder that was opened cannot send a key elsewhere.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mmsp_nb.protocol.suggestions import did_you_mean

__all__ = ["apply", "drop_unusable", "find", "refused", "unknown", "unusable"]

refused: dict[str, Any] = {}
"""Settings that were refused in this session. ``%config`` leaves them in the shell's config all the same."""


TABLE = "mmsp_nb"
_TRUE = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def find(
    names: Iterable[str], environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> tuple[dict[str, tuple[Any, str]], list[str]]:
    """Values by name, each with where it comes from; and what is wrong in the file, a line each."""
    known = list(names)
    found: dict[str, tuple[Any, str]] = {}
    path, table, faults = _table(folder or Path.cwd())
    for name, value in table.items():
        if name in known:
            found[name] = value, str(path)
        else:
            faults.append(f"{path}: [tool.{TABLE}] knows no {name}{did_you_mean(name, known)}")
    for name in known:
        variable = f"MMSP_NB_{name.upper()}"
        if written := environ.get(variable, "").strip():
            found[name] = written, variable
    if "model" in found and found["model"][1] == str(path) and environ.get("MMSP_MODEL", "").strip():
        del found["model"]  # which is looked at when nothing is set
        found.pop("client_type", None)
    return found, faults


def apply(magics: Any, environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> list[str]:
    """Set the traits that no traitlets config has set. Returns what is wrong, or is to be known, a line each."""
    from traitlets import TraitError

    traits = magics.traits(config=True)
    given = magics.config.get(type(magics).__name__, {})
    found, faults = find(traits, environ, folder)
    for name, (value, source) in found.items():
        if name in given or (name == "live" and source.startswith("MMSP_NB_")):  # `host.is_live` looks at that itself
            continue
        try:
            setattr(magics, name, _read(traits[name], value))
            magics.sources[name] = source
            if name == "mask_keys" and not magics.mask_keys:  # a folder that was opened may have said so
                faults.append(f"{source}: mask_keys is off, so keys in prompts and results are sent to models")
        except (TraitError, ValueError) as error:
            faults.append(f"{source}: {name} = {value!r} cannot be used: {' '.join(str(error).split())[:200]}")
    return faults


def drop_unusable(magics: Any, config: Any) -> list[str]:
    """Take out of a traitlets config what ``magics`` (the class) cannot use, so that it can be made with it.

    Returns what was wrong, a line each. What this session has refused goes without a word.
    """
    from traitlets import HasTraits, TraitError
    from traitlets.config.loader import DeferredConfig, LazyConfigValue

    section = config.get(magics.__name__)
    faults: list[str] = []
    for name, trait in magics.class_traits(config=True).items():
        value = section.get(name) if section else None
        if value is None or isinstance(value, LazyConfigValue):
            continue
        if name in refused and refused[name] == value:
            del section[name]
            continue
        try:
            # what a command line gives is text until somebody knows which trait it is for
            trait.validate(HasTraits(), value.get_value(trait) if isinstance(value, DeferredConfig) else value)
        except (TraitError, ValueError) as error:
            said = " ".join(str(error).split()).replace("HasTraits", magics.__name__)
            written = str(value) if isinstance(value, DeferredConfig) else repr(value)
            faults.append(f"{magics.__name__}.{name} = {written} cannot be used: {said[:200]}")
            del section[name]
    return faults


def unusable(model: str | None, client_type: str | None) -> str:
    """Why this model, or client type, cannot be used; nothing when it can."""
    from mmsp_nb.choosing import make_client
    from mmsp_nb.protocol.errors import MMSPError
    from mmsp_nb.providers.vendors import ALIASES, VENDORS

    if client_type is not None and client_type.strip().lower() not in (known := {**VENDORS, **ALIASES}):
        return f"there is no client type {client_type!r}{did_you_mean(client_type, known)}"
    if not model:
        return ""
    try:
        make_client(model, {} if client_type is None else {"client_type": client_type})
    except MMSPError as error:
        return _hinted(str(error))
    return ""


def unknown(model: str, client_type: str | None) -> str:
    """Why no request could ever go to this model: a name nobody knows. No key is missed, no server started."""
    from mmsp_nb import local

    if local.is_local(model) and client_type is None:
        return ""
    from mmsp_nb.protocol.errors import ApiKeyRequiredError, RoutingError
    from mmsp_nb.providers.routing import resolve

    try:
        resolve(model, client_type=client_type, stand_in="none")
    except ApiKeyRequiredError:
        return ""
    except RoutingError as error:
        return _hinted(str(error))
    return ""


def _hinted(said: str) -> str:
    hint = "needs a client type first: %config MMSPMagics.client_type ="
    return said.replace("needs client_type=, for instance", hint)


def _read(trait: Any, value: Any) -> Any:
    """A value as the trait takes it: what the environment says is text."""
    from traitlets import Bool, Float, Int

    if not isinstance(value, str):
        return value
    if isinstance(trait, Int):
        try:
            return int(value)
        except ValueError:
            raise ValueError("it is no whole number") from None
    if isinstance(trait, Float):
        try:
            return float(value.strip().removeprefix("$"))
        except ValueError:
            raise ValueError("it is no number") from None
    if isinstance(trait, Bool):
        return _TRUE.get(value.lower(), value)
    return value


def _table(folder: Path) -> tuple[Path | None, dict[str, Any], list[str]]:
    for each in (folder, *folder.parents):
        path = each / "pyproject.toml"
        try:
            if not path.is_file():
                continue
            table = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get(TABLE)
        except (OSError, ValueError) as error:
            return path, {}, [f"{path} cannot be read: {error}"]
        if isinstance(table, dict):
            return path, table, []
    return None, {}, []
