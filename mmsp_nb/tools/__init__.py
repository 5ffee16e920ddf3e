"""Functions as tools: function -> schema, call of a model -> outcome, value -> what a model sees.

Knows nothing of conversations, clients and notebooks.
"""

from __future__ import annotations

from mmsp_nb.tools.calling import PreparedCall, ToolOutcome, held, interrupted, prepare, run_calls
from mmsp_nb.tools.definition import Tool
from mmsp_nb.tools.hints import ToolDefinitionError
from mmsp_nb.tools.policy import Decision, Policy, Verdict
from mmsp_nb.tools.registries import ToolRegistry, Tools, registry, registry_of, tool
from mmsp_nb.tools.schema import inline_refs
from mmsp_nb.tools.views import View, view

__all__ = [
    "Decision",
    "Policy",
    "PreparedCall",
    "Tool",
    "ToolDefinitionError",
    "ToolOutcome",
    "ToolRegistry",
    "Tools",
    "Verdict",
    "View",
    "held",
    "inline_refs",
    "interrupted",
    "prepare",
    "registry",
    "registry_of",
    "run_calls",
    "tool",
    "view",
]
