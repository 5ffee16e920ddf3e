"""The scripted client of the agent's tests, under a name that no other folder's helper has."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if "agent_scripted" not in sys.modules:
    path = Path(__file__).parents[1] / "agent" / "agent_scripted.py"
    spec = importlib.util.spec_from_file_location("agent_scripted", path)
    assert spec is not None and spec.loader is not None
    sys.modules["agent_scripted"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
