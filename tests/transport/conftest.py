import asyncio

import pytest

from mmsp_nb.testing import FakeProvider
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy


@pytest.fixture
def provider():
    with FakeProvider() as server:
        yield server


@pytest.fixture
def waits():
    """The seconds that the transport wanted to wait; it does not wait."""
    return []


@pytest.fixture
def make_transport(waits):
    async def sleep(seconds):
        waits.append(seconds)
        await asyncio.sleep(0)

    def make(**options):
        return Transport(**{"sleep": sleep, "jitter": lambda: 0.0, "retries": RetryPolicy(2)} | options)

    return make


@pytest.fixture
def transport(make_transport):
    return make_transport()
