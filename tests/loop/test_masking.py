from __future__ import annotations

import pytest

from mmsp_nb.masking import mask_keys


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Incorrect key: sk-proj-aB3dE5gH7jK9mN1pQ3s.", "Incorrect key: sk-proj-***"),
        ("sk-ant-api03-abcdefghijklmnop12345 was refused", "sk-ant-*** was refused"),
        ("AIzaSyA1234567890abcdefghijk", "AIza***"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
        ("{'x-api-key': 'abcdefghijk', 'a': 1}", "{'x-api-key': '***', 'a': 1}"),
        ("https://host/v1?api_key=abcdefgh12&x=1", "https://host/v1?api_key=***&x=1"),
        ("postgres://user:correcthorse@db:5432/x", "postgres://user:***@db:5432/x"),
    ],
)
def test_what_is_shaped_like_a_key_is_hidden(text, masked):
    assert mask_keys(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8080/long/path",
        "token: 12 tokens",
        "no module named sk-learn-is-a-long-package-name",
        "the ask-me-anything-2024-session was long",
        "password is short",
    ],
)
def test_ordinary_text_stays(text):
    assert mask_keys(text) == text


def test_an_errors_code_is_no_name_of_a_key_but_a_key_behind_it_is_hidden() -> None:
    text = "invalid_api_key: Incorrect API key provided: sk-abcdefgh12345678"
    assert mask_keys(text) == "invalid_api_key: Incorrect API key provided: sk-***"
    assert mask_keys("invalid_api_key: 0123abcd4567") == "invalid_api_key: ***"
    assert mask_keys("api_key: Incorrect") == "api_key: ***"
