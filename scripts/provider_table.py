"""Writes docs/providers.md from the vendor table: `provider_table.py [--check]`.

What a client type can do is not claimed but asked: a request is built for each, and what the package refuses by
itself counts as no. Nothing is sent.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from mmsp_nb.local import VENDOR_DEFAULTS
from mmsp_nb.protocol.configs import check_config
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.providers import catalog
from mmsp_nb.providers.base import with_inlined
from mmsp_nb.providers.vendors import ALIASES, FAMILIES, VENDORS, Vendor, bedrock, vertex

PAGE = Path(__file__).resolve().parent.parent / "docs" / "providers.md"

DIALECTS = {
    "responses": "Responses",
    "chat": "Chat Completions",
    "messages": "Messages",
    "interactions": "Interactions",
    "generate_content": "generateContent",
    "embeddings": "Embeddings",
    "mmsp": "MMSP",
}
AUTH = {
    "bearer": "`Authorization: Bearer`",
    "x-api-key": "`X-Api-Key`",
    "both": "`X-Api-Key` and `Authorization`",
    "goog": "`x-goog-api-key`",
    "aws": "AWS signature",
    "vertex": "OAuth token of a service account",
}
ANY_MODEL = {
    "openai-embedding": "text-embedding-3-small",
    "openai-responses": "gpt-5.5",
    "openai-chat": "any-model",
    "ant-messages": "any-model",
}
PIXEL = "data:image/png;base64,iVBORw0KGgo="
TOOL = {"name": "f", "description": "A function.", "parameters": {"type": "object", "properties": {}}}
LEVELS = ("none", "low", "medium", "high", "xhigh", "max")
CHOICES = (
    ("auto", "auto"),
    ("none", "none"),
    ("required", "required"),
    ("one tool", ["f"]),
    ("some tools", ["f", "g"]),
)

HEAD = """# Providers

*This page is generated from the vendor table by `python scripts/provider_table.py`; a test compares them.*

The model's id decides the client type; where an id does not tell, `client_type=` does (in a cell `--client-type`).
Keys come from the environment and only go to the provider's own address, or to the one that the environment names.
"""


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is not what the vendor table says: run python scripts/provider_table.py", file=sys.stderr)
        return 1
    return 0


def page() -> str:
    """The whole page."""
    rows = {name: (vendor, sample(name)) for name, vendor in VENDORS.items()}
    clouds = {
        "anthropic-official over Bedrock": (bedrock("us-east-1"), sample("anthropic-official")),
        "google-genai over Vertex AI": (vertex("project"), sample("google-genai")),
    }
    parts = [HEAD, "## Where\n", table(["client type", "models", "wire format", "key", "address"], where(rows))]
    parts.append(
        "Other spellings: "
        + ", ".join(f"`{alias}` is `{name}`" for alias, name in ALIASES.items())
        + ". The address can "
        "be changed by the variable below it, or by `base_url=`.\n\n"
        'Claude over Amazon Bedrock: `base_url="bedrock://<region>"` with the key '
        "`<access key id>,<secret access key>`. "
        'Gemini over Vertex AI: `client_type="google-genai"` with a service account\'s JSON document as the key '
        "(needs `pip install 'mmsp-nb[vertex]'`).\n\n"
        "Without a key: `local` is a small real model, `demo` answers by rules, `fake:<fault>` plays what can go wrong "
        "(see [testing](testing.md#faults-by-name)); each of them in every wire format, by `client_type`.\n"
    )
    parts += ["## What\n", "Asked of the model in the second column; others of the same client type may differ.\n"]
    columns = ["client type", "asked of", "tools", "tool choice", "thinking levels", "images", "images by address"]
    columns += ["temperature", "prompt caching", "fast mode", "embeddings", "model list"]
    parts.append(table(columns, (what(name, *row) for name, row in {**rows, **clouds}.items())))
    parts.append(
        "*fetched*: the package fetches the picture and sends it inside of the request. A thinking level in brackets "
        "is sent as the one before it. Whatever is refused is refused before anything is sent, with the name of the "
        "option.\n"
    )
    return "\n".join(parts)


def sample(name: str) -> str:
    """A model to ask for a client type's capabilities."""
    if name in ANY_MODEL:
        return ANY_MODEL[name]
    named = [model for model, kind in VENDOR_DEFAULTS.values() if kind == name]
    listed = [row.model for row in catalog.models() if row.client == name]
    return (named or listed or {"google-genai": ["gemini-3.8-flash"]}.get(name) or ["any-model"])[0]


def where(rows: Mapping[str, tuple[Vendor, str]]) -> Any:
    prefixes: dict[str, list[str]] = {}
    for prefix, name in FAMILIES.items():
        if not prefix.startswith("text-embedding"):
            prefixes.setdefault(name, []).append(f"`{prefix}…`")
    prefixes["openai-embedding"] = ["`text-embedding-…`"]
    for name, (vendor, _) in rows.items():
        key = (
            f"`{vendor.api_key_env}`" + (" (may be missing)" if vendor.open_server else "") + f"<br>{AUTH[vendor.auth]}"
        )
        address = f"{vendor.default_base_url}<br>`{vendor.base_url_env}`"
        yield [f"`{name}`", " ".join(prefixes.get(name, ["by `client_type`"])), DIALECTS[vendor.dialect], key, address]


def what(name: str, vendor: Vendor, model: str) -> list[str]:
    if vendor.dialect == "mmsp":
        return [f"`{name}`", "", *["as the server's model"] * 9, "yes"]
    embeds = vendor.dialect == "embeddings" or _builds(_embedder(vendor), "gemini-embedding-001", {})
    first = [f"`{name.partition(' ')[0]}`{name[len(name.partition(' ')[0]) :]}", f"`{model}`"]
    listing = yes(_lists(vendor))
    if vendor.dialect == "embeddings":
        return [*first, *["no"] * 8, yes(embeds), listing]
    tools = [TOOL, {**TOOL, "name": "g"}]
    choices = [name for name, choice in CHOICES if _builds(vendor, model, {"tools": tools, "tool_choice": choice})]
    caching = [value for value in ("enable", "enhance", "disable") if _builds(vendor, model, {"prompt_caching": value})]
    image = {"type": "image_url.done", "image_url": PIXEL}
    address = {"type": "image_url.done", "image_url": "https://example.org/a.png"}
    shown = _builds(vendor, model, {}, image)
    by_address = "fetched" if shown and vendor.inline_images else yes(shown and _builds(vendor, model, {}, address))
    return [
        *first,
        yes(_builds(vendor, model, {"tools": [TOOL]})),
        ", ".join(choices) or "no",
        levels(vendor, model),
        yes(shown),
        by_address,
        temperature(vendor, model),
        ", ".join(caching),
        yes(_builds(vendor, model, {"fast_mode": True})),
        yes(embeds),
        listing,
    ]


def levels(vendor: Vendor, model: str) -> str:
    """The levels, those in brackets that are the same as the one before."""
    shown, before = [], None
    for level in LEVELS:
        body = _body(vendor, model, {"thinking_level": level})
        if body is None:
            continue
        shown.append(f"({level})" if body == before else level)
        before = body
    plain = _body(vendor, model, {})
    return "not sent" if before == plain and all(part.startswith("(") for part in shown[1:]) else " ".join(shown)


def temperature(vendor: Vendor, model: str) -> str:
    if _builds(vendor, model, {"temperature": 1.7}):
        return "any"
    if _builds(vendor, model, {"temperature": 0.5}):
        return "0 to 1"
    return "1 only"


def yes(answer: bool) -> str:
    return "yes" if answer else "no"


def table(columns: list[str], rows: Any) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])


def _embedder(vendor: Vendor) -> Vendor | None:
    return replace(vendor, dialect="embeddings") if vendor.rules.get("embedding") else None


def _builds(vendor: Vendor | None, model: str, config: dict[str, Any], *items: dict[str, Any]) -> bool:
    return vendor is not None and _body(vendor, model, config, *items) is not None


def _body(vendor: Vendor, model: str, config: dict[str, Any], *items: dict[str, Any]) -> Any:
    """The body of a request, or None where the package refuses to make one."""
    message: Any = {"role": "user", "content_items": [{"type": "text.done", "text": "Hi"}, *items]}
    try:
        checked = check_config(config)
        dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
        return [request.body for request in dialect.build(vendor, model, with_inlined([message], {}), checked)]
    except MMSPError:
        return None


def _lists(vendor: Vendor) -> bool:
    try:
        import_module(f"mmsp_nb.providers.{vendor.dialect}").models_request(vendor)
    except MMSPError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
