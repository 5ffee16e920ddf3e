from __future__ import annotations

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mmsp_nb.testing.plugin import fake_provider  # noqa: F401

# A process has one provider of each kind, so the tests share them.
EXPORTER, READER = InMemorySpanExporter(), InMemoryMetricReader()


@pytest.fixture(scope="session")
def _providers():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([READER]))
    return provider


@pytest.fixture
def spans(_providers, monkeypatch):
    """The finished spans of the test, as a function."""
    for name in ("MMSP_NB_OTEL", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    EXPORTER.clear()
    READER.get_metrics_data()
    yield lambda: list(EXPORTER.get_finished_spans())
    EXPORTER.clear()


@pytest.fixture
def measured(spans):
    """Name of a metric -> its data points, of the whole session so far."""

    def read():
        data = READER.get_metrics_data()
        found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        return {metric.name: list(metric.data.data_points) for metric in found}

    return read
