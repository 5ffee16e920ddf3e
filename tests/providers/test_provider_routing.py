"""From ids, client types, keys and URLs to routes."""

from __future__ import annotations

import sys
import types

import pytest
from provider_helpers import MODELS, attributes, requests, route

from mmsp_nb.protocol.errors import ApiKeyRequiredError, MMSPError, RoutingError, UnsupportedParameterError
from mmsp_nb.providers.base import Request
from mmsp_nb.providers.routing import auth_headers, family, resolve
from mmsp_nb.providers.vendors import VENDORS

KEYS = {vendor.api_key_env: f"env-{vendor.api_key_env}" for vendor in VENDORS.values()}


@pytest.mark.parametrize(
    ("model", "client_type", "client"),
    [
        ("gpt-5.5", "openai-official", "OpenAIOfficialClient"),
        ("GPT-5.5", "openai-official", "OpenAIOfficialClient"),
        ("text-embedding-3-large", "openai-embedding", "OpenaiEmbeddingClient"),
        ("claude-opus-5-5", "anthropic-official", "AnthropicOfficialClient"),
        ("claude-of-the-future-9", "anthropic-official", "AnthropicOfficialClient"),
        ("gemini-3.8-flash", "google-official", "GoogleOfficialClient"),
        ("glm-5.3", "zai-official", "ZAIOfficialClient"),
        ("kimi-k3", "moonshot-official", "MoonshotOfficialClient"),
        ("deepseek-flash", "deepseek-official", "DeepSeekOfficialClient"),
        ("MiniMax-M3", "minimax-official", "MiniMaxOfficialClient"),
    ],
)
def test_family_of_a_model_id_chooses_the_official_client(model: str, client_type: str, client: str) -> None:
    found = resolve(model, environ=KEYS)
    assert (found.vendor.name, found.vendor.client, found.model, found.named) == (client_type, client, model, False)


@pytest.mark.parametrize(
    ("named", "client_type"),
    [
        ("openai", "openai-chat"),
        ("gemini-official", "google-official"),
        ("gemini-generate-content", "google-genai"),
        ("OpenAI-Chat", "openai-chat"),
        *((name, name) for name in VENDORS),
    ],
)
def test_named_client_type_wins_over_the_family(named: str, client_type: str) -> None:
    found = resolve("claude-opus-5", "key", client_type=named, environ={})
    assert (found.vendor.name, found.named) == (client_type, True)


def test_client_type_comes_from_the_environment_when_none_is_passed() -> None:
    environ = {**KEYS, "CLIENT_TYPE": "openai-responses"}
    assert resolve("claude-opus-5", environ=environ).vendor.name == "openai-responses"
    assert resolve("claude-opus-5", client_type="mmsp", environ=environ).vendor.name == "mmsp"
    assert resolve("claude-opus-5", client_type="", environ={**KEYS, "CLIENT_TYPE": ""}).named is False


def test_embedding_ids_reach_the_embedding_dialect() -> None:
    assert (
        resolve("text-embedding-3-large", "k", client_type="openai-official", environ={}).vendor.dialect == "embeddings"
    )
    for client_type in ("google-official", "google-genai"):
        vendor = resolve("gemini-Embedding-2", "k", client_type=client_type, environ={}).vendor
        assert (vendor.name, vendor.dialect) == (client_type, "embeddings")
    assert resolve("my-embedding", "k", client_type="openai-chat", environ={}).vendor.dialect == "chat"


@pytest.mark.parametrize(
    ("options", "client_type", "words"),
    [
        ({"model": "gpt5.5"}, None, "did you mean 'gpt-5.5'?"),
        ({"model": "claud-opus-5-5"}, None, "did you mean 'claude-opus-5-5'?"),
        ({"model": "openai/gpt-5.5"}, None, "client_type='openai-responses', base_url='https://openrouter.ai/api/v1'"),
        ({"model": "o3"}, None, "needs client_type="),
        ({"model": "gpt-5.5", "client_type": "openai-offical"}, "openai-offical", "did you mean 'openai-official'?"),
        ({"model": "gpt-5.5", "client_type": "xyz"}, "xyz", "known: openai-official"),
    ],
)
def test_unknown_names_are_answered_with_a_suggestion(options: dict, client_type: str | None, words: str) -> None:
    with pytest.raises(RoutingError) as caught:
        resolve(**options, environ=KEYS)
    assert words in str(caught.value)
    assert (caught.value.model, caught.value.client_type) == (options["model"], client_type)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["", "  ", None, 5])
def test_model_that_is_no_id_is_refused(model: object) -> None:
    with pytest.raises(RoutingError, match="model must be a model id"):
        resolve(model, environ=KEYS)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(VENDORS))
def test_given_key_goes_to_given_named_or_default_endpoint(name: str) -> None:
    vendor, model = VENDORS[name], MODELS[name]
    variable = {vendor.base_url_env: "https://named.example/v9/"}
    for options, environ, expected in [
        ({"base_url": "https://given.example/v1"}, variable, "https://given.example/v1"),
        ({}, variable, "https://named.example/v9"),
        ({}, {vendor.base_url_env: ""}, vendor.default_base_url.rstrip("/")),
    ]:
        found = resolve(model, "arg", client_type=name, environ={**KEYS, **environ}, **options)
        assert (found.api_key, found.base_url) == ("arg", expected)


@pytest.mark.parametrize("name", list(VENDORS))
def test_key_of_the_environment_goes_only_where_the_environment_or_the_vendor_says(name: str) -> None:
    vendor, model = VENDORS[name], MODELS[name]
    own = KEYS[vendor.api_key_env]
    assert resolve(model, client_type=name, environ=KEYS).api_key == own
    named = resolve(model, client_type=name, environ={**KEYS, vendor.base_url_env: "https://named.example"})
    assert (named.api_key, named.base_url) == (own, "https://named.example")
    same = resolve(model, base_url=f" {vendor.default_base_url}// ", client_type=name, environ=KEYS)
    assert same.api_key == (None if vendor.open_server else own)


def test_default_endpoint_is_recognised_in_any_case_of_scheme_and_host() -> None:
    assert resolve("x", base_url="HTTPS://API.OpenAI.com/v1/", client_type="openai-chat", environ=KEYS).api_key
    for other in (
        "https://api.openai.com/V1",
        "https://api.openai.com/v1?x=1",
        "https://api.openai.com.evil.example/v1",
    ):
        with pytest.raises(ApiKeyRequiredError):
            resolve("x", base_url=other, client_type="openai-chat", environ=KEYS)


@pytest.mark.parametrize("name", [name for name, vendor in VENDORS.items() if not vendor.open_server])
def test_other_endpoint_needs_a_key_of_its_own(name: str) -> None:
    vendor = VENDORS[name]
    url = "http://127.0.0.1:9/v1"
    # even when the environment names the very same endpoint
    environ = {**KEYS, vendor.base_url_env: url}
    with pytest.raises(ApiKeyRequiredError) as caught:
        resolve(MODELS[name], base_url=url, client_type=name, environ=environ)
    assert attributes(caught.value) == {
        "client": vendor.client,
        "client_type": name,
        "api_key_env": vendor.api_key_env,
        "base_url_env": vendor.base_url_env,
        "base_url": url,
    }
    assert KEYS[vendor.api_key_env] not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, vendor in VENDORS.items() if not vendor.open_server])
def test_missing_key_is_reported_at_once_for_every_vendor(name: str) -> None:
    with pytest.raises(ApiKeyRequiredError) as caught:
        resolve(MODELS[name], client_type=name, environ={VENDORS[name].api_key_env: " ", "GOOGLE_API_KEY": "no"})
    assert caught.value.base_url is None
    assert VENDORS[name].api_key_env in str(caught.value)


def test_auth_header_among_the_default_headers_is_as_good_as_a_key() -> None:
    found = resolve("claude-opus-5", default_headers={"authorization": "Bearer x"}, environ={})
    assert found.headers_for(Request("/v1/messages")) == {"authorization": "Bearer x"}
    with pytest.raises(ApiKeyRequiredError):
        resolve("claude-opus-5", default_headers={"X-Title": "x"}, environ={})


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("openai-official", {"Authorization": "Bearer K"}),
        ("openai-chat", {"Authorization": "Bearer K"}),
        ("anthropic-official", {"X-Api-Key": "K"}),
        ("ant-messages", {"X-Api-Key": "K", "Authorization": "Bearer K"}),
        ("google-official", {"x-goog-api-key": "K"}),
        ("google-genai", {"x-goog-api-key": "K"}),
        ("openai-embedding", {"Authorization": "Bearer K"}),
        ("mmsp", {"Authorization": "Bearer K"}),
    ],
)
def test_key_travels_in_the_header_of_the_vendor(name: str, headers: dict) -> None:
    assert auth_headers(route(name, key="K")) == headers


def test_open_servers_work_without_a_key() -> None:
    vllm = resolve("x", base_url="http://127.0.0.1:9/v1", client_type="openai-chat-vllm-adapter", environ=KEYS)
    assert auth_headers(vllm) == {"Authorization": "Bearer EMPTY"}
    mmsp = resolve("x", base_url="http://127.0.0.1:25752/v1", client_type="mmsp", environ=KEYS)
    assert (mmsp.api_key, auth_headers(mmsp)) == (None, {})


def test_default_headers_override_every_other_header_of_the_same_name() -> None:
    found = route("anthropic-official", key="K", default_headers={"x-api-key": "other", "ANTHROPIC-VERSION": "1"})
    request = Request("/v1/messages", headers={"anthropic-version": "2026-10-21", "Accept": "application/json"})
    assert found.headers_for(request) == {"x-api-key": "other", "ANTHROPIC-VERSION": "1", "Accept": "application/json"}
    mmsp = route("mmsp", key="K", default_headers={"authorization": "other", "X-A": "1"})
    assert mmsp.headers_for(Request("/stream")) == {"Authorization": "Bearer K", "X-A": "1"}


def test_route_shows_no_key_and_no_header_values() -> None:
    found = route("openai-chat", key="sk-secret-1", default_headers={"Authorization": "Bearer sk-secret-2"})
    assert "secret" not in repr(found)
    assert "openai-chat" in repr(found)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("openai-official", "https://api.openai.com/v1/responses"),
        ("deepseek-official", "https://api.deepseek.com/responses"),
        ("openai-chat", "https://api.openai.com/v1/chat/completions"),
        ("zai-official", "https://api.z.ai/api/paas/v4/chat/completions"),
        ("anthropic-official", "https://api.anthropic.com/v1/messages"),
        ("google-official", "https://generativelanguage.googleapis.com/v1/interactions"),
        (
            "google-genai",
            "https://generativelanguage.googleapis.com/v1/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
        ),
        ("openai-embedding", "https://api.openai.com/v1/embeddings"),
        ("mmsp", "http://127.0.0.1:25752/v1/stream"),
    ],
)
def test_path_is_appended_to_the_endpoint(name: str, url: str) -> None:
    (request,) = requests(name)
    assert route(name).url(request) == url


@pytest.mark.parametrize("key", ["sk-secret\nsk-secret", "sk-secret…", "sk-secret\x00"])
def test_key_that_could_not_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ApiKeyRequiredError, match="paste it again") as caught:
        resolve("gpt-5.5", key, environ={})
    assert "secret" not in str(caught.value)
    assert resolve("gpt-5.5", " sk-key\n", environ={}).api_key == "sk-key"


@pytest.mark.parametrize("headers", [{"X-A": "a\nb"}, {"X-A": 5}, {"X-\n": "a"}, {"X-A": "é"}])
def test_default_headers_that_are_none_are_refused_by_name(headers: dict) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        route("openai-chat", default_headers=headers)
    assert caught.value.parameter == "default_headers"
    assert repr(next(iter(headers))) in str(caught.value)


def test_family_knows_prefixes_only() -> None:
    assert family("Claude-x") == "anthropic-official"
    assert family("text-embedding-3-small") == "openai-official"
    assert family("openai/gpt-x") is None


def test_bedrock_url_makes_a_bedrock_route() -> None:
    found = resolve(
        "global.anthropic.claude-opus-5", "AKID,SECRET", "bedrock://eu-west-1/", "anthropic-official", environ={}
    )
    assert found.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert (found.vendor.auth, found.vendor.inline_images, found.vendor.rules["region"]) == ("aws", True, "eu-west-1")
    assert (auth_headers(found), found.api_key) == ({}, "AKID,SECRET")
    environ = {"ANTHROPIC_BASE_URL": "bedrock://us-east-1", "ANTHROPIC_API_KEY": "A,B"}
    assert resolve("claude-x", environ=environ).vendor.rules["region"] == "us-east-1"


@pytest.mark.parametrize("key", ["AKID", "A,B,C"])
def test_bedrock_key_needs_exactly_one_comma(key: str) -> None:
    with pytest.raises(MMSPError, match="access key id") as caught:
        resolve("x", key, "bedrock://us-east-1", "anthropic-official", environ={})
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "url",
    [
        *("bedrock://", "bedrock://evil.example/", "bedrock://us-east-1.x", "ftp://x", "x", "http://", "http:///v1"),
        *("http://[::1", "http://127.0.0.1:99999/v1", "http://127.0.0.1:abc/v1", "http://exa mple/v1"),
    ],
)
def test_impossible_base_urls_are_refused(url: str) -> None:
    with pytest.raises(RoutingError, match=r"base_url must be|base URL such as"):
        resolve("x", "A,B", url, "anthropic-official", environ={})


def test_the_variable_that_holds_an_impossible_base_url_is_named() -> None:
    with pytest.raises(RoutingError, match=r"^OPENAI_BASE_URL must be a URL that starts with http"):
        resolve("gpt-5.5", environ={**KEYS, "OPENAI_BASE_URL": "api.example.com"})


def test_a_blank_base_url_is_none() -> None:
    assert resolve("gpt-5.5", environ={**KEYS, "OPENAI_BASE_URL": "  "}).base_url == "https://api.openai.com/v1"
    assert resolve("gpt-5.5", base_url=" ", environ=KEYS).api_key == KEYS["OPENAI_API_KEY"]


def test_a_key_in_the_place_of_a_url_is_not_shown() -> None:
    with pytest.raises(RoutingError) as caught:
        resolve("x", "https://example.com", "sk-proj-aB3dE5gH7jK9mN1pQ3s", "openai-chat", environ={})
    assert "aB3dE5" not in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://x.example/v1?api-version=7", "https://x.example/v1/chat?api-version=7"),
        ("https://x.example/v1/?api-version=7", "https://x.example/v1/chat?api-version=7"),
        ("https://x.example/v1/#part", "https://x.example/v1/chat"),
        ("https://x.example/v1//", "https://x.example/v1/chat"),
    ],
)
def test_the_path_goes_before_the_query_of_a_base_url(base_url: str, url: str) -> None:
    found = resolve("x", "k", base_url, "openai-chat", environ={})
    assert found.url(Request("/chat")) == url
    with_query = found.url(Request("/chat?limit=5"))
    assert with_query.startswith("https://x.example/v1/chat?") and with_query.endswith("limit=5")


@pytest.mark.parametrize("given", [{"api_key": 5}, {"api_key": b"k"}, {"base_url": 5}, {"client_type": b"x"}])
def test_what_is_no_string_is_refused_by_name(given: dict) -> None:
    (name,) = given
    with pytest.raises(RoutingError, match=f"^{name} must be a string, not (int|bytes)$"):
        resolve("gpt-5.5", **given, environ=KEYS)
    with pytest.raises(UnsupportedParameterError, match="default_headers must be a dict"):
        resolve("gpt-5.5", default_headers=["X-A"], environ=KEYS)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ['"sk-secret"', "'sk-secret'", "Bearer sk-secret", "bearer sk-secret"])
def test_a_key_with_quotes_or_its_scheme_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ApiKeyRequiredError, match="must stand alone") as caught:
        resolve("gpt-5.5", key, environ={})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("model", ["DEMO", "demo ", "Local"])
def test_a_misspelt_model_of_this_package_is_recognised(model: str) -> None:
    with pytest.raises(RoutingError, match=f"did you mean '{model.strip().lower()}'"):
        resolve(model, environ={})


SERVICE_ACCOUNT = '{"type": "service_account", "project_id": "proj-1", "private_key": "PEM"}'


def test_service_account_key_leads_genai_to_vertex() -> None:
    found = resolve("gemini-3.8-flash", SERVICE_ACCOUNT, client_type="google-genai", environ={})
    assert (found.vendor.auth, found.base_url) == ("vertex", "https://aiplatform.googleapis.com")
    assert (auth_headers(found), "PEM" in repr(found)) == ({}, False)
    given = resolve("gemini-3.8-flash", SERVICE_ACCOUNT, "https://proxy.example/", "google-genai", environ={})
    assert given.base_url == "https://proxy.example"


def test_service_account_key_never_travels_as_a_header() -> None:
    with pytest.raises(RoutingError) as caught:
        resolve("gemini-3.8-flash", SERVICE_ACCOUNT, environ={})
    assert caught.value.client_type == "google-official"
    for broken in ("{not json", '{"type": "x"}', '{"project_id": "../x"}'):
        with pytest.raises(ApiKeyRequiredError, match="project_id"):
            resolve("gemini-3.8-flash", broken, client_type="google-genai", environ={})


@pytest.mark.parametrize(
    ("model", "client_type", "wanted"),
    [("demo", None, "openai-chat"), ("demo:slow", "ant-messages", "ant-messages"), ("local", None, "openai-chat")],
)
def test_demo_and_local_ids_lead_to_an_endpoint_of_ours(
    monkeypatch: pytest.MonkeyPatch, model: str, client_type: str | None, wanted: str
) -> None:
    asked = []

    def endpoint(model: str, client_type: str) -> types.SimpleNamespace:
        asked.append((model, client_type))
        return types.SimpleNamespace(base_url="http://127.0.0.1:5/v1/", api_key="k", model="demo-1")

    local = types.ModuleType("mmsp_nb.local")
    local.endpoint = endpoint  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mmsp_nb.local", local)
    monkeypatch.setattr("mmsp_nb.local", local, raising=False)
    found = resolve(model, client_type=client_type, environ={})
    assert asked == [(model, wanted)]
    # the id stays as it was given: it leads to the same endpoint again
    assert (found.vendor.name, found.model) == (wanted, model)
    assert (found.base_url, found.api_key) == ("http://127.0.0.1:5/v1", "k")


def test_demo_with_an_endpoint_of_the_callers_is_an_ordinary_id() -> None:
    found = resolve("demo", "k", "http://127.0.0.1:9/v1", "openai-chat", environ={})
    assert (found.model, found.base_url) == ("demo", "http://127.0.0.1:9/v1")


def test_the_demo_model_for_embeddings_gives_embeddings() -> None:
    found = resolve("demo:embedding", environ={})
    assert (found.vendor.name, found.vendor.dialect) == ("openai-embedding", "embeddings")


def test_a_key_given_as_the_model_is_told_so_and_not_shown() -> None:
    key = "sk-proj-aB3dE6gH9kL2mN5pQ8rS"
    with pytest.raises(
        RoutingError, match=r"'sk-proj-\*\*\*'; that is a key: give the model's id, and this as api_key="
    ) as caught:
        resolve(key, environ={})
    assert key not in repr(vars(caught.value))
    with pytest.raises(RoutingError, match=r"no client type 'sk-proj-\*\*\*'") as caught:
        resolve("demo-like", client_type=key, environ={})
    assert key not in repr(vars(caught.value))
