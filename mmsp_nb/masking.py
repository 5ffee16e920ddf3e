"""Hides what looks like an API key in text that leaves the process or is shown.

Only shapes are known here, no values: whoever knows a key masks it by value as well.
"""

from __future__ import annotations

import re

__all__ = ["MASK", "mask_keys"]

MASK = "***"

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


def mask_keys(text: str) -> str:
    """``text`` with everything that is shaped like a key, a token or a password replaced by ``***``."""
    text = _NAMED.sub(_hide_named, text)
    return _KEY.sub(lambda match: match["keep"] + MASK, text)


def _hide_named(match: re.Match[str]) -> str:
    keep: str = match["keep"]
    if keep.startswith("://") and not match.string.startswith("@", match.end()):
        return match[0]  # host:port/..., no password
    return keep + MASK
