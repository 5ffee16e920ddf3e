"""The fixtures for users' own tests."""

from __future__ import annotations

import os

import httpx
import pytest

from mmsp_nb.testing import Reply
from mmsp_nb.testing.plugin import VARIABLES, fake_provider, no_provider_keys  # noqa: F401


def test_the_provider_is_running_and_empty(fake_provider):  # noqa: F811
    fake_provider.add(Reply.json(1))
    assert httpx.get(fake_provider.url("/")).json() == 1
    assert len(fake_provider.requests) == 1


@pytest.fixture
def keys(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "sk-from-the-environment")


def test_keys_and_endpoints_are_out_of_sight(keys, no_provider_keys):  # noqa: F811
    assert [name for name in VARIABLES if name in os.environ] == []


def test_every_vendors_variables_are_covered():
    from mmsp_nb.providers.vendors import VENDORS

    used = {name for vendor in VENDORS.values() for name in (vendor.api_key_env, vendor.base_url_env)}
    assert used - {None} <= set(VARIABLES)
