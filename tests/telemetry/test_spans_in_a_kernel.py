"""In a notebook the cell's thread, the loop's thread and the tools' threads all see one trace."""

from __future__ import annotations

import json
import os
import sys

import nbclient
import nbformat
import pytest

pytestmark = pytest.mark.kernel

SETUP = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

%load_ext mmsp_nb
from mmsp_nb import tool

@tool
def get_weather(location: str) -> str:
    "Gets the current weather for a given location."
    with trace.get_tracer("user").start_as_current_span("lookup"):
        return f"rain in {location}"
"""
QUESTION = "%%mmsp --model demo --tools get_weather\nWhat's the weather in London and in Paris?"
PYTHON = """
from mmsp_nb import Conversation
with trace.get_tracer("user").start_as_current_span("cell"):
    Conversation("demo", tools=[get_weather]).ask("What's the weather in London and in Paris?")
"""
READ = """
import json
print(json.dumps([[s.name, s.context.span_id, s.parent and s.parent.span_id] for s in exporter.get_finished_spans()]))
exporter.clear()
"""


def test_spans_of_a_magic_and_of_python_in_a_cell(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name == "PYTEST_CURRENT_TEST"]:
        monkeypatch.delenv(name)
    cells = [SETUP, QUESTION, READ, PYTHON, READ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python", "language": "python"}
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": "."}})
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    for read, outer in ((2, None), (4, "cell")):
        spans = json.loads(notebook.cells[read].outputs[0]["text"])
        ids = {name: [span for n, span, _ in spans if n == name] for name, *_ in spans}
        above = {name: {parent for n, _, parent in spans if n == name} for name, *_ in spans}
        [agent_name] = [name for name in ids if name.startswith("invoke_agent")]
        [agent] = ids[agent_name]
        assert above[agent_name] == {ids[outer][0] if outer else None}
        assert above["chat demo"] == above["execute_tool get_weather"] == {agent}
        assert above["lookup"] == set(ids["execute_tool get_weather"]) and len(above["lookup"]) == 2
