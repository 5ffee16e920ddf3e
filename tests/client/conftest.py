import pytest

from mmsp_nb import AutoLLMClient
from mmsp_nb.testing import FakeProvider
from mmsp_nb.testing.plugin import no_provider_keys  # noqa: F401
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy


@pytest.fixture(autouse=True)
def _no_keys(no_provider_keys):  # noqa: F811
    pass


@pytest.fixture
def provider():
    with FakeProvider() as server:
        yield server


@pytest.fixture
def make_client(provider):
    def make(client_type="openai-chat", model="some-model", path="/v1", **options):
        options.setdefault("transport", Transport(retries=RetryPolicy(2, base=0.001)))
        return AutoLLMClient(model, "sk-test-0123456789", provider.url(path), client_type, **options)

    return make


@pytest.fixture
def client(make_client):
    return make_client()
