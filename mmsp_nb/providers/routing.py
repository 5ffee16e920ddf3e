"""From a model id to a `Route`: which adapter, which endpoint, which key.

A key from the environment only ever goes to the vendor's default endpoint, or to the one that the
environment itself names. Nothing but the variables of the client type's own row is read.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from mmsp_nb.masking import mask_keys
from mmsp_nb.protocol.errors import ApiKeyRequiredError, RoutingError, UnsupportedParameterError
from mmsp_nb.providers import catalog, vendors
from mmsp_nb.providers.base import Request
from mmsp_nb.providers.mapping import with_headers
from mmsp_nb.providers.vendors import ALIASES, FAMILIES, VENDORS, Vendor

__all__ = ["Route", "auth_headers", "family", "resolve"]

_OURS = ("demo", "local")
_AUTH_HEADERS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key"})


@dataclass(frozen=True, slots=True)
class Route:
    """Where the requests for one model go."""

    vendor: Vendor
    model: str
    """The id that is sent, exactly as given."""
    base_url: str = field(repr=False)
    """The endpoint, without a trailing slash; `url` appends a request's path. It may hold a password or a key."""
    api_key: str | None = field(default=None, repr=False)
    named: bool = False
    """Whether the client type was named, by argument or ``CLIENT_TYPE``, not deduced from the id."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The caller's default headers."""

    def url(self, request: Request) -> str:
        """The address of a request. A query of the base URL (``?api-version=...``) stays, behind the path."""
        base, mark, query = self.base_url.partition("?")
        if not mark:
            return base + request.path
        path, _, own = request.path.partition("?")
        return f"{base.rstrip('/')}{path}?{'&'.join(part for part in (query, own) if part)}"

    def headers_for(self, request: Request) -> dict[str, str]:
        """All headers of a request: its own, the key's, and over both of them the caller's default headers."""
        if self.vendor.dialect == "mmsp":
            # there the key wins over a default header
            return with_headers(request.headers, self.headers, auth_headers(self))
        return with_headers(auth_headers(self), request.headers, self.headers)


def resolve(
    model: str,
    api_key: str | None = None,
    base_url: str | None = None,
    client_type: str | None = None,
    default_headers: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    stand_in: str | None = None,
) -> Route:
    """Find the route of a model. Empty strings count as not given.

    RoutingError for a model id or client type that nobody knows; ApiKeyRequiredError for a missing key, and
    for a ``base_url`` without a key of its own (the environment's must not be sent there);
    UnsupportedParameterError for ``default_headers`` that are no headers.
    The ids ``demo``, ``demo:...``, ``local`` and ``fake:...`` lead to servers of this package on loopback.
    ``stand_in`` is for when nothing will be sent: it takes the place of a missing key, and no server is started.
    """
    if not isinstance(model, str) or not model.strip():
        raise RoutingError(f"model must be a model id such as 'gpt-5.5', not {model!r}", model=None)
    for name, value in (("api_key", api_key), ("base_url", base_url), ("client_type", client_type)):
        if value is not None and not isinstance(value, str):  # its value is not shown: it may be a key
            raise RoutingError(f"{name} must be a string, not {type(value).__name__}", model=model)
    base_url = base_url and base_url.strip()
    named = client_type or environ.get("CLIENT_TYPE") or ""
    headers = _checked(default_headers or {})
    if not (api_key or base_url) and (model in _OURS or model.startswith(("demo:", "fake:"))):
        return _local(model, named, headers, stand_in)
    vendor = _vendor(model, named)
    if vendor.rules.get("embedding") and "embedding" in model.lower():
        vendor = replace(vendor, dialect="embeddings")
    try:
        key, endpoint = _credentials(vendor, api_key, base_url, headers, environ)
    except ApiKeyRequiredError:
        if stand_in is None or api_key:
            raise
        endpoint = base_url or environ.get(vendor.base_url_env, "").strip() or vendor.default_base_url
        key = f"{stand_in},{stand_in}" if endpoint.lower().startswith("bedrock://") else stand_in
    vendor, endpoint = _special(vendor, model, key, endpoint, explicit=bool(base_url))
    return Route(vendor, model, endpoint.rstrip("/"), key, bool(named), headers)


def family(model: str) -> str | None:
    """The client type of the official vendor of a model id, by its prefix; None for an unknown family."""
    return next((name for prefix, name in FAMILIES.items() if model.lower().startswith(prefix)), None)


def auth_headers(route: Route) -> dict[str, str]:
    """The headers that carry the key. Empty without one, and where the transport must sign or fetch a token."""
    key = route.api_key or route.vendor.rules.get("keyless")
    if not key:
        return {}
    bearer = {"Authorization": f"Bearer {key}"}
    by_kind = {"bearer": bearer, "x-api-key": {"X-Api-Key": key}, "both": {"X-Api-Key": key, **bearer}}
    return {**by_kind, "goog": {"x-goog-api-key": key}}.get(route.vendor.auth, {})


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        why = f"default_headers must be a dict of names and values, not {type(headers).__name__}"
        raise UnsupportedParameterError(why, parameter="default_headers")
    for name, value in headers.items():
        if not all(isinstance(part, str) and part.isascii() and part.isprintable() for part in (name, value)):
            why = f"default_headers: {name!r} must be a text of printable ASCII characters"
            raise UnsupportedParameterError(why, parameter="default_headers")
    return dict(headers)


def _local(model: str, named: str, headers: dict[str, str], stand_in: str | None) -> Route:
    from mmsp_nb import local  # starts a server, so it is imported when it is needed

    vendor = _vendor(model, named or ("openai-embedding" if model == "demo:embedding" else "openai-chat"))
    if stand_in is not None:
        return Route(vendor, model, "http://127.0.0.1/v1", stand_in, True, headers)
    endpoint = local.endpoint(model, vendor.name)
    # the id as it was given, which leads here again; the servers of this package take any
    return Route(vendor, model, endpoint.base_url.rstrip("/"), endpoint.api_key, True, headers)


def _vendor(model: str, named: str) -> Vendor:
    if named:
        lowered = named.strip().lower()
        name = ALIASES.get(lowered, lowered)
        if name not in VENDORS:
            close = difflib.get_close_matches(lowered, [*VENDORS, *ALIASES], 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(VENDORS)}"
            named = mask_keys(named)
            raise RoutingError(f"no client type {named!r}; {hint}", model=mask_keys(model), client_type=named)
    else:
        name = family(model) or ""
        if not name:
            told = mask_keys(model)
            hint = _model_hint(model) if told == model else "that is a key: give the model's id, and this as api_key="
            raise RoutingError(f"no vendor is known for model {told!r}; {hint}", model=told)
    if name == "openai-official" and model.lower().startswith("text-embedding-"):
        name = "openai-embedding"
    return VENDORS[name]


def _model_hint(model: str) -> str:
    listed = catalog.find(model)
    if listed:
        return f"for {listed.platform} pass client_type={listed.client!r}, base_url={listed.base_url!r} and its api_key"
    known = [*_OURS, *(row.model for row in catalog.models() if family(row.model))]
    if close := difflib.get_close_matches(model.strip().lower(), known, 1, 0.7):
        return f"did you mean {close[0]!r}?"
    return f"ids start with {', '.join(FAMILIES)}; any other needs client_type=, for instance 'openai-chat'"


def _public(url: str) -> str:
    """``url`` without user, query and fragment, in which keys stand: what may be shown."""
    scheme, mark, rest = re.split(r"[?#]", url, maxsplit=1)[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return scheme + mark + host.rpartition("@")[2] + slash + path


def _credentials(
    vendor: Vendor, api_key: str | None, base_url: str | None, headers: dict[str, str], environ: Mapping[str, str]
) -> tuple[str | None, str]:
    key = (api_key or "").strip() or None
    env_key = environ.get(vendor.api_key_env, "").strip() or None
    endpoint = base_url or environ.get(vendor.base_url_env, "").strip() or vendor.default_base_url
    foreign = bool(base_url) and (vendor.open_server or _comparable(endpoint) != _comparable(vendor.default_base_url))
    if key is None and not foreign:
        key = env_key
    if key is None and not vendor.open_server and not any(name.lower() in _AUTH_HEADERS for name in headers):
        why = f"{vendor.client} needs a key: set {vendor.api_key_env} or pass api_key"
        if foreign:
            why = (
                f"base_url {_public(endpoint)!r} needs an api_key of its own: the one in {vendor.api_key_env} is not "
                f"sent there (set {vendor.base_url_env} to trust it; a server that wants no key takes any)"
            )
        raise ApiKeyRequiredError(
            why,
            client=vendor.client,
            client_type=vendor.name,
            api_key_env=vendor.api_key_env,
            base_url_env=vendor.base_url_env,
            base_url=_public(base_url) if base_url and foreign else None,
        )
    if key and not key.startswith("{") and not (key.isascii() and key.isprintable()):
        # found out later, it would stand in an error message of the HTTP library
        raise _bad_key(vendor, "the key holds a line break or another character that no key has: paste it again")
    if key and re.match(r"[\"']|bearer\s", key, re.IGNORECASE):
        raise _bad_key(vendor, "the key must stand alone: take off the quotes, or the word 'Bearer'")
    return key, endpoint


def _special(vendor: Vendor, model: str, key: str | None, endpoint: str, explicit: bool) -> tuple[Vendor, str]:
    """Bedrock, Vertex AI, and what can be wrong with a key or URL; the vendor and endpoint in the end."""

    def refuse(why: str) -> RoutingError:
        return RoutingError(why, model=model, client_type=vendor.name)

    service_account = (key or "").startswith("{")
    if service_account and vendor.name == "google-official":
        raise refuse(
            "a service account's key needs client_type='google-genai': google-official would send it as a header"
        )
    if service_account and vendor.name == "google-genai":
        special = vendors.vertex(_project(vendor, key or ""))
        default = _comparable(endpoint) == _comparable(vendor.default_base_url)
        return replace(
            special, dialect=vendor.dialect
        ), special.default_base_url if default and not explicit else endpoint
    if vendor.name == "anthropic-official" and endpoint.lower().startswith("bedrock://"):
        region = endpoint[len("bedrock://") :].rstrip("/")
        if not re.fullmatch(r"[a-z0-9-]+", region):
            raise refuse(f"expected a base URL such as bedrock://us-east-1, not {endpoint!r}")
        if (key or "").count(",") != 1:
            raise _bad_key(vendor, "Bedrock needs the key '<access key id>,<secret access key>'")
        special = vendors.bedrock(region)
        return special, special.default_base_url
    if fault := _url_fault(endpoint):
        said = "base_url" if explicit else vendor.base_url_env
        raise refuse(f"{said} must be {fault}, not {mask_keys(_public(endpoint))!r}")
    return vendor, endpoint.partition("#")[0]


def _url_fault(url: str) -> str:
    """What a base URL should be that is none; nothing for one that can be used."""
    try:
        parts = urlsplit(url)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            return "a URL that starts with http:// or https://"
        parts.port  # noqa: B018  # raises when it is none
    except ValueError:
        return "a URL such as http://localhost:8000/v1, its port a number up to 65535"
    return "a URL without spaces" if re.search(r"\s", url) else ""


def _project(vendor: Vendor, key: str) -> str:
    try:
        project = json.loads(key)["project_id"]
    except (ValueError, KeyError, TypeError):
        project = None
    if not isinstance(project, str) or not re.fullmatch(r"[\w.:-]+", project):
        raise _bad_key(vendor, "a service account's key must be its whole JSON document, with a project_id") from None
    return project


def _bad_key(vendor: Vendor, why: str) -> ApiKeyRequiredError:
    names = {"api_key_env": vendor.api_key_env, "base_url_env": vendor.base_url_env}
    return ApiKeyRequiredError(why, client=vendor.client, client_type=vendor.name, **names)


def _comparable(url: str) -> tuple[str, ...]:
    """What makes two endpoints the same: scheme and host without case, the path without trailing slashes."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:  # no URL; it is refused later
        return (url,)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), parts.query, parts.fragment
