import sys

import pytest

from mmsp_nb.testing.plugin import fake_provider, no_provider_keys  # noqa: F401

# the tests of the MMSP server share them, and may have come first
pytest.register_assert_rewrite(*{"wire_rules", "switch_kinds"} - sys.modules.keys())


@pytest.fixture(autouse=True)
def _no_keys(no_provider_keys):  # noqa: F811
    pass
