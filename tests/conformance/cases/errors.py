"""Refusals, broken connections, errors inside streams, and what construction refuses."""

from __future__ import annotations

from collections.abc import Iterator

from mmsp_nb.testing import Frame, Reply, faults, streams
from mmsp_nb.testing.parts import call, text

from ..rig import BASE, Case
from .common import KINDS, Kind, ask

# the SDKs of the reference wait half a second and more between attempts unless told otherwise
SOON = {"retry_after_ms": "1", "retry_after": "0"}

ALIASES = {
    "openai": "openai-chat",
    "gemini-official": "google-official",
    "gemini-generate-content": "google-genai",
}
FAMILIES = {
    "GPT-5.5": "openai-official",
    "Claude-opus-5-5": "anthropic-official",
    "gemini-3.8-flash": "google-official",
    "GLM-5.3": "zai-official",
    "kimi-k3": "moonshot-official",
    "deepseek-v4-vision": "deepseek-official",
    "MiniMax-M3": "minimax-official",
}


def cases() -> Iterator[Case]:
    for kind in KINDS.values():
        for status in (400, 401, 403, 404, 422):
            yield ask(kind, f"errors/status-{status}", replies=[faults.reply(f"status-{status}", kind.dialect)])
        refused = faults.refused(kind.dialect, 429, "slow down", "rate_limit_error", **SOON)
        if kind.name != "google-official":  # its SDK waits seven seconds whatever the headers say
            yield ask(kind, "errors/rate-limited-then-fine", replies=[refused, kind.reply()])
            yield ask(kind, "errors/rate-limited-for-good", replies=[refused] * 6)
        yield ask(kind, "errors/html", replies=[faults.reply("html", kind.dialect)])
        yield ask(kind, "errors/empty-stream", replies=[faults.reply("empty", kind.dialect)])
        yield ask(kind, "errors/error-in-stream", replies=[faults.reply("error-in-stream", kind.dialect)])
        yield ask(kind, "errors/not-json", replies=[faults.reply("not-json", kind.dialect)])
        broken = kind.reply(text("a", "b"), call("f", '{"a": 1}', id="c1"))
        half = len(broken.content) * 2 // 3
        yield ask(kind, "errors/torn", replies=[broken.cut(half)])
        yield ask(kind, "errors/closed-in-the-middle", replies=[broken.cut(half, "fin")])
        yield ask(kind, "errors/ended-in-the-middle", replies=[broken.end(half)])
        yield from _listing(kind)
        yield from _construction(kind)
    yield from _special()


def _listing(kind: Kind) -> Iterator[Case]:
    module = streams.DIALECTS[kind.dialect]
    steps = [{"do": "models"}]
    listing = Reply.json(module.models(["b-1", "a/2", kind.model]))
    yield Case(f"{kind.name}/models/one-page", kind.client(), steps, [listing])
    yield Case(f"{kind.name}/models/refused", kind.client(), steps, [faults.reply("status-401", kind.dialect)])
    headers = {"X-Test": "1"}
    yield Case(f"{kind.name}/models/default-headers", kind.client(default_headers=headers), steps, [listing])
    if kind.dialect == "messages":
        pages = [Reply.json(module.models(["c-1", "c-2"], has_more=True)), Reply.json(module.models(["c-3"]))]
        yield Case(f"{kind.name}/models/two-pages", kind.client(), steps, pages)
    if kind.dialect in ("interactions", "generate_content"):
        pages = [Reply.json(module.models(["g-1"], next_page="p2")), Reply.json(module.models(["g-2"]))]
        yield Case(f"{kind.name}/models/two-pages", kind.client(), steps, pages)


def _construction(kind: Kind) -> Iterator[Case]:
    def make(what: str, client: dict, env: dict[str, str] | None = None) -> Case:
        steps = [
            {"do": "stream", "messages": [{"role": "user", "content_items": [{"type": "text.done", "text": "Hi"}]}]}
        ]
        return Case(f"{kind.name}/clients/{what}", client, steps, [kind.reply()], env or {})

    named = {"model": kind.model, "client_type": kind.name}
    variable = _variable(kind.name)
    yield make("url-without-key", {**named, "base_url": kind.base})
    yield make("url-without-key-but-in-environment", {**named, "base_url": kind.base}, {f"{variable}_API_KEY": "k-env"})
    both = {f"{variable}_API_KEY": "k-env", f"{variable}_BASE_URL": kind.base}
    yield make("environment", named, both)
    yield make("environment-url-and-key-argument", {**named, "api_key": "k-arg"}, both)
    yield make("empty-arguments-are-unset", {**named, "api_key": "", "base_url": ""}, both)
    yield make("url-argument-equal-to-environment", {**named, "base_url": kind.base}, both)
    yield make("client-type-in-environment", {"model": kind.model}, {**both, "CLIENT_TYPE": kind.name.upper()})
    yield make("trailing-slash", kind.client(base_url=kind.base + "/"))
    yield make("default-headers", kind.client(default_headers={"X-Test": "1", "X-Test-Two": "zwei"}))
    auth = {"messages": "X-Api-Key", "interactions": "x-goog-api-key", "generate_content": "x-goog-api-key"}
    header = auth.get(kind.dialect, "Authorization")
    yield make("default-headers-override-auth", kind.client(default_headers={header: "mine"}))


def _variable(name: str) -> str:
    prefixes = {"anthropic-official": "ANTHROPIC", "ant-messages": "ANTHROPIC", "openai-chat-vllm-adapter": "VLLM"}
    prefixes |= {"google-official": "GEMINI", "google-genai": "GEMINI", "mmsp": "MMSP"}
    return prefixes.get(name) or name.split("-")[0].upper()


def _special() -> Iterator[Case]:
    kind = KINDS["openai-chat"]
    for alias, target in ALIASES.items():
        other = KINDS[target]
        yield ask(other, f"clients/alias-{alias}", client_type=alias)
    yield ask(kind, "clients/unknown-type", client_type="openai-chta")
    yield ask(kind, "clients/unknown-family", model="o3", client_type=None)
    yield ask(kind, "clients/prefix-inside", model="openai/gpt-5.5", client_type="")
    yield ask(kind, "clients/client-type-in-capitals", client_type="OpenAI-Chat")
    google = KINDS["google-official"]
    yield ask(google, "clients/service-account-key", api_key='{"type": "service_account"}')
    claude = KINDS["anthropic-official"]
    yield ask(claude, "clients/bedrock-bad-key", base_url="bedrock://us-east-1", api_key="one")
    bedrock = claude.client(base_url="bedrock://us-east-1", api_key="id,secret")
    yield Case("anthropic-official/models/bedrock", bedrock, [{"do": "models"}])
    for model, name in FAMILIES.items():
        yield ask(KINDS[name], "clients/type-from-the-model-id", model=model, client_type=None)
        module = streams.DIALECTS[KINDS[name].dialect]
        ids = [
            "gpt-5.5",
            "claude-x",
            "gemini-x",
            "glm-x",
            "kimi-x",
            "deepseek-x",
            "minimax-x",
            "text-embedding-x",
            "other",
        ]
        client = KINDS[name].client(model, client_type=None)
        yield Case(f"{name}/models/only-the-family", client, [{"do": "models"}], [Reply.json(module.models(ids))])
    mmsp = KINDS["mmsp"]
    yield ask(mmsp, "errors/status-201", replies=[Reply.json({"error": {"type": "X", "message": "m"}}, 201)])
    yield ask(mmsp, "errors/status-redirect", replies=[Reply.data(b"moved", "text/plain", 302)])
    yield ask(mmsp, "errors/not-an-error-object", replies=[Reply.json({"detail": "x"}, 422)])
    frame = Frame({"error": {"type": "RateLimitError", "message": "m", "status": 429}})
    yield ask(mmsp, "errors/error-with-status", replies=[Reply.stream([frame, Frame("[DONE]")])])
    yield ask(mmsp, "clients/no-key", api_key=None)
    yield ask(KINDS["openai-chat-vllm-adapter"], "clients/no-key", api_key=None)
    yield ask(kind, "clients/blank-base", base_url=f" {BASE}/v1 ")
