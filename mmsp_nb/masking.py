"""Hides what looks like an API key in text that leaves the process or is shown.

Only shapes are known here, no values: whoever knows a key masks it by value as well.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    *("HALF_KEY", "LONGEST_KEY", "MASK", "SHORTEST_KEY", "conceal", "concealable", "environment_secrets", "key_spans"),
    *("mask_keys", "remember", "remembered", "without_secrets"),
]

MASK = "***"
LONGEST_KEY = 300
"""Characters. A longer run of base64 is a picture or a signature, whatever it looks like; but for JSON Web Tokens."""

# OpenAI, Anthropic, DeepSeek, OpenRouter, ...; Google, Groq, xAI, ...; GitHub, GitLab, Slack, Amazon, any web token
_PREFIX = (
    r"(?<![A-Za-z0-9])(?:sk-(?:ant-|proj-|or-|svcacct-)?"
    r"|AIza|AQ\.|gsk_|xai-|hf_|nvapi-|r8_|pplx-|fw_|tgp_v1_|bce-v3/"
    r"|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abpors]-|AKIA|ASIA|eyJ)"
)
_BODY = r"[A-Za-z0-9_\-./+=]"
# The part in group "keep" stays, so that a reader sees what kind of key was there. A key has digits, a hyphenated name
# has none.
_KEY = re.compile(rf"(?P<keep>{_PREFIX})(?=[A-Za-z_\-./+=]*\d){_BODY}{{16,}}")
HALF_KEY = re.compile(rf"{_PREFIX}{_BODY}*\Z")
"""The beginning of what may become a key, at the end of a text that goes on."""

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

# The prefixes above, as a text is looked through for them before anything else.
_SIGNS = (
    *("sk-", "AIza", "AQ.", "gsk_", "xai-", "hf_", "nvapi-", "r8_", "pplx-", "fw_", "tgp_v1_", "bce-v3/"),
    *("ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "eyJ"),
)
_TELLING = ("AIza", "bce-v3/", "glpat-", "xox")  # prefixes that are nothing else; others begin names and files as well
_RUN = re.compile(r"[A-Za-z0-9]{12,}")
_AMAZON = re.compile(r"[A-Z0-9]{16}(?![A-Za-z0-9_])")
_WORDS = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)(?:[-_./: ](?:[A-Z]?[a-z]+|[A-Z]+))*")

SHORTEST_KEY = 8
"""Characters. Shorter values are no keys, and would be found inside ordinary words."""

remembered: set[str] = set()
"""Keys that were passed to clients of this process; see `remember`."""

_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PASSPHRASE)$|(?:PASSWORD|PASSWD)$", re.IGNORECASE
)
_KEY_VARIABLE = re.compile(r"_(?:KEY|PAT)$", re.IGNORECASE)
# What is called a key may be a column's name or a file: a key is long, has a digit, and is no path and no address.
_KEY_VALUE = re.compile(r"(?![/~.]|[A-Za-z]:[/\\])(?!.*://)(?=.*\d).{16,}", re.S)
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")


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
    """The values of variables that are called keys, tokens, secrets or passwords, and the passwords of addresses.

    None is shorter than 8 characters.
    """
    found: set[str] = set()
    for name, value in (os.environ if environ is None else environ).items():
        if len(value) < SHORTEST_KEY:
            continue
        if _SECRET_VARIABLE.search(name) or (_KEY_VARIABLE.search(name) and _KEY_VALUE.fullmatch(value)):
            found.add(value)
        elif "://" in value and "@" in value:
            found.update(password for password in _URL_PASSWORD.findall(value) if not _is_ordinary(password))
    return found


def without_secrets(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A message, item or config as it may be kept in a file: a copy without keys, as far as one was needed.

    Hidden is what has the shape of a key, the values of the environment's keys, and ``secrets``. What is only called
    a key stays: it may be code that the conversation is about. So do fidelity and pictures, which a change would spoil.
    """
    values = sorted(
        environment_secrets() | {secret for secret in secrets if len(secret) >= SHORTEST_KEY}, key=len, reverse=True
    )
    return _cleaned(value, re.compile("|".join(map(re.escape, values))) if values else None)


def remember(*values: str | None) -> None:
    """Know these values as keys from now on, as far as they are long enough to be any."""
    remembered.update(value for value in values if value and len(value) >= SHORTEST_KEY)


def concealable(values: Iterable[str]) -> list[tuple[str, str]]:
    """What `conceal` takes: each value that can be told from ordinary text, with what it is replaced by; longest first.

    A variable may be called a token and hold ``development``. So what is shorter than 8 characters, plain words of
    fewer than 20 and numbers of fewer than 12 are left out. Values are also looked for as they stand in JSON.
    """
    found: dict[str, str] = {}
    for value in values:
        if _is_ordinary(value):
            continue
        shaped = _KEY.match(value)
        found[value] = found[json.dumps(value)[1:-1]] = (shaped["keep"] if shaped else "") + MASK
    return sorted(found.items(), key=lambda pair: len(pair[0]), reverse=True)


def conceal(text: str, known: Iterable[tuple[str, str]] = ()) -> tuple[str, int]:
    """``text`` as a model may read it, and how many keys were taken out of it.

    What a user says is to arrive as it was said, so this is stricter than `mask_keys` about what is a key: only known
    values (of `concealable`), and shapes that hardly anything else has. A file called ``hf_dataset_2024.parquet``
    stays, and so does what is merely called a key, such as ``password = ...`` in code.
    """
    count = 0
    for value, instead in known:
        if value in text:
            count += text.count(value)
            text = text.replace(value, instead)
    if any(sign in text for sign in _SIGNS):

        def hide(match: re.Match[str]) -> str:
            nonlocal count
            whole = match[0]
            if not _is_key(match["keep"], whole[len(match["keep"]) :]) or (hidden := _hide_shaped(match)) == whole:
                return whole
            count += 1
            return hidden + whole[len(whole.rstrip(".")) :]  # the end of a sentence is no part of a key

        text = _KEY.sub(hide, text)
    return text, count


def _is_ordinary(value: str) -> bool:
    """Whether a value cannot be told from ordinary text."""
    size = len(value)
    return (
        size < SHORTEST_KEY or (size < 20 and _WORDS.fullmatch(value) is not None) or (size < 12 and value.isdecimal())
    )


def _is_key(keep: str, rest: str) -> bool:
    """Whether what follows a prefix is long and random enough to be a key and no name."""
    if keep == "eyJ":
        return rest.count(".") >= 2  # a JSON Web Token; else it is base64 of any JSON
    if keep in ("AKIA", "ASIA"):
        return _AMAZON.match(rest) is not None
    if keep.startswith(_TELLING):
        return True
    return any(not (run.isalpha() or run.isdecimal()) for run in _RUN.findall(rest))


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
