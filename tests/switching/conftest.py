import pytest

from mmsp_nb.testing.plugin import fake_provider, no_provider_keys  # noqa: F401

pytest.register_assert_rewrite("wire_rules", "switch_kinds")


@pytest.fixture(autouse=True)
def _no_keys(no_provider_keys):  # noqa: F811
    pass
