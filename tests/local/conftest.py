import pytest

from mmsp_nb import local
from mmsp_nb.local.demo import DemoServer
from mmsp_nb.testing.plugin import no_provider_keys  # noqa: F401


@pytest.fixture(autouse=True)
def _no_keys(no_provider_keys):  # noqa: F811
    pass


@pytest.fixture(scope="session")
def demo():
    """The root URL of a demo server for the whole session: it keeps nothing between requests."""
    with DemoServer() as server:
        yield server.base_url


@pytest.fixture
def fresh_local():
    """No server of this process runs before or after the test."""
    local.shutdown()
    yield local
    local.shutdown()
