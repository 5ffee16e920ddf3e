"""Keys do not reach the screen, whole or in part."""

from __future__ import annotations

import pytest

from mmsp_nb.notebook.secrets import Secrets, mask_exception

KEY = "vendorkey-that-has-no-known-shape"


@pytest.fixture
def secrets() -> Secrets:
    return Secrets(
        {"SOME_API_KEY": KEY, "HF_TOKEN": "tokentokentoken", "HOME": "/home/somebody", "SHORT_API_KEY": "abc"}
    )


def test_values_of_key_variables_are_masked_whatever_they_look_like(secrets: Secrets) -> None:
    assert secrets.mask(f"key={KEY}, {KEY}! tokentokentoken") == "key=***, ***! ***"
    assert secrets.mask("abc /home/somebody") == "abc /home/somebody"


def test_key_shaped_text_is_masked_without_knowing_it(secrets: Secrets) -> None:
    assert "abcd1234" not in secrets.mask("sk-ant-abcd1234abcd1234abcd1234")


def test_a_remembered_key_is_masked_from_then_on(secrets: Secrets) -> None:
    secrets.remember("quite-another-key", None, "")
    assert secrets.mask("quite-another-key") == "***"


@pytest.mark.parametrize("length", range(4, len(KEY)))
def test_a_key_that_is_still_being_written_is_masked_too(secrets: Secrets, length: int) -> None:
    assert secrets.mask(f"the key is {KEY[:length]}", running=True) == "the key is ***"


def test_the_beginning_of_a_known_shape_is_masked_while_it_runs(secrets: Secrets) -> None:
    for begun in ("sk-ant-ab", "AQ.Ab8", "fw_3Z", "tgp_v1_x", "bce-v3/AL", "ghp_a1", "xoxb-12", "ASIAX", "eyJhbGci.e"):
        assert secrets.mask(f"try {begun}", running=True) == "try ***"
    assert secrets.mask("the disk-drive", running=True) == "the disk-drive"


def test_an_exception_loses_its_keys() -> None:
    error = ValueError("refused sk-ant-abcd1234abcd1234abcd1234", 7)
    mask_exception(error)
    assert "abcd1234" not in str(error)
    assert error.args[1] == 7
