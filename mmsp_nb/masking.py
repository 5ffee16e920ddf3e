"""Hides what looks like an API key in text that leaves the process or is shown.

Only shapes are known here, no values: whoever knows a key masks it by value as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["LONGEST_KEY", "MASK", "environment_secrets", "key_spans", "mask_keys", "without_secrets"]

MASK = "***"
LONGEST_KEY = 300
"""Characters. A longer run of base64 is a picture or a signature, whatever it looks like; but for JSON Web Tokens."""

# The part in group "keep" stays, so that a reader sees what kind of key was there.
_KEY = re.compile(
    r"""(?x)
    (?P<keep>
        (?<![A-Za-z0-9]) sk-(?:ant-|proj-|or-|svcacct-)?       # OpenAI, Anthropic, DeepSeek, OpenRouter, ...
      | (?<![A-Za-z0-9]) (?:AIza|AQ\.|gsk_|xai-|hf_|nvapi-|r8_|pplx-|fw_|tgp_v1_|bce-v3/)
      | (?<![A-Za-z0-9]) (?:ghp_|gho_|ghs_|github_pat_|glpat-|xox[abpors]-|AKIA|ASIA|eyJ)
    )
    (?= [A-Za-z_\-./+=]* \d ) [A-Za-z0-9_\-./+=]{16,}           # a key has digits, a hyphenated name has none
    """
)
# A value that is called a key: a header, an assignment, a query parameter.
_NAMED = re.compile(
    r"""(?ix)
    (?P<keep>
        \b (?:
            [\w-]* (?: api[-_]?key | access[-_]?token | secret[-_]?key | client[-_]?secret | goog-api-key )
          | authorization | token | password
        )
        ["']? \s* [:=] \s* ["']? (?: (?:bearer|basic) \s+ )?
      | \b bearer \s+
      | :// [^/\s:@]* :                                       # the password of a URL
    )
    (?P<value> [^\s"'&,;<>@(){}\[\]]{8,} )
    """
)

_SECRET_VARIABLE = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PASSWORD)$", re.IGNORECASE)


def mask_keys(text: str) -> str:
    """``text`` with everything that is shaped like a key, a token or a password replaced by ``***``."""
    text = _NAMED.sub(_hide_named, text)
    return _KEY.sub(lambda match: match["keep"] + MASK, text)


def key_spans(text: str) -> list[tuple[int, int]]:
    """Where `mask_keys` would put its mask: (start, end) of each key, without what stays before it."""
    found = [match.span("value") for match in _NAMED.finditer(text) if _hide_named(match) != match[0]]
    found += [(match.end("keep"), match.end()) for match in _KEY.finditer(text)]
    return sorted(found)


def environment_secrets(environ: Mapping[str, str] | None = None) -> set[str]:
    """The values of variables that are called keys, tokens, secrets or passwords; none shorter than 8 characters."""
    environ = os.environ if environ is None else environ
    return {value for name, value in environ.items() if len(value) >= 8 and _SECRET_VARIABLE.search(name)}


def without_secrets(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A message, item or config as it may be kept in a file: a copy without keys, as far as one was needed.

    Hidden is what has the shape of a key, the values of the environment's keys, and ``secrets``. What is only called
    a key stays: it may be code that the conversation is about. So do fidelity and pictures, which a change would spoil.
    """
    values = sorted(environment_secrets() | {secret for secret in secrets if len(secret) >= 8}, key=len, reverse=True)
    return _cleaned(value, re.compile("|".join(map(re.escape, values))) if values else None)


def _cleaned(value: Any, known: re.Pattern[str] | None) -> Any:
    if isinstance(value, str) and value[:5].lower() != "data:":
        clean = value if known is None else known.sub(MASK, value)
        return _KEY.sub(_hide_shaped, clean)
    if isinstance(value, Mapping):
        return {key: inner if key == "fidelity" else _cleaned(inner, known) for key, inner in value.items()}
    return [_cleaned(inner, known) for inner in value] if isinstance(value, list | tuple) else value


def _hide_shaped(match: re.Match[str]) -> str:
    keep: str = match["keep"]
    # a longer run of base64 is data, whatever stands in it; but a JSON Web Token may be long
    return match[0] if len(match[0]) > LONGEST_KEY and keep != "eyJ" else keep + MASK


def _hide_named(match: re.Match[str]) -> str:
    keep: str = match["keep"]
    if keep.startswith("://") and not match.string.startswith("@", match.end()):
        return match[0]  # host:port/..., no password
    if keep.lower().startswith(("invalid_", "missing_")) and match["value"].isalpha():
        return match[0]  # an error's code and the first word of its message: "invalid_api_key: Incorrect API key"
    return keep + MASK
