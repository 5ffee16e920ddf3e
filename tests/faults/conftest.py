import pytest

from mmsp_nb.testing import FakeProvider
from mmsp_nb.testing.plugin import no_provider_keys  # noqa: F401


@pytest.fixture(autouse=True)
def _no_keys(no_provider_keys):  # noqa: F811
    pass


@pytest.fixture
def provider():
    with FakeProvider() as running:
        yield running
