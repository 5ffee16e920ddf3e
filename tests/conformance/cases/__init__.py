"""All conformance cases. Each module has a generator ``cases()``."""

from __future__ import annotations

from ..rig import Case
from . import configs, edges, errors, google, histories, items, special, streaming


def all_cases() -> list[Case]:
    """Every case, in a fixed order. Ids are unique."""
    modules = (configs, items, streaming, histories, errors, google, special, edges)
    found = [case for module in modules for case in module.cases()]
    ids = [case.id for case in found]
    repeated = {name for name in ids if ids.count(name) > 1} if len(set(ids)) < len(ids) else set()
    if repeated:
        raise ValueError(f"repeated case ids: {sorted(repeated)[:5]}")
    return found
