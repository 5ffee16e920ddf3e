"""What must not be written into a recording, and how it is taken out. Pure.

Secrets are the values that a request carries as such (headers, URL parameters), those of the environment's key
variables, and all text that has the shape of a key. A stream may carry one in pieces, cut anywhere, even across
the events that a model's text comes in; so an answer is looked at as a whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from mmsp_nb.masking import LONGEST_KEY, MASK, environment_secrets, key_spans
from mmsp_nb.transport.wire import WireRequest

__all__ = ["Redactor", "public_query", "url_secrets"]

Span = tuple[int, int]

_SECRET_PARAMETER = re.compile(
    r"(?:^|[-_.])(?:key|apikey|token|sig|signature|credential|secret|password|passwd|auth|authorization|code)$", re.I
)
_SECRET_FIELD = re.compile(
    r"(?:^|[-_])(?:api[-_]?key|token|secret|password|authorization|private[-_]?key|secret[-_]?key|cookie)$", re.I
)
_URL = re.compile(r"https?://[^\s\"'<>\\]+")
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)", re.S)
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.S)
_RUN = re.compile(r"[A-Za-z0-9+/=_\-]*")


class Redactor:
    """Takes the secrets of one exchange out of what is written of it.

    Args:
        request: the request, whose headers and URL name some of them.
        secrets: more values to look for, for instance those of the environment (the default).
    """

    def __init__(self, request: WireRequest, secrets: Iterable[str] | None = None) -> None:
        values = set(environment_secrets() if secrets is None else secrets)
        values.update(request.headers.secrets())
        values.update(url_secrets(request.url))
        known = sorted((value for value in values if len(value) >= 6), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        # binary frames carry checksums, so no more is changed there than must be
        self._shapes = request.framing != "aws"

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        if "://" in text and not text.startswith("data:"):
            text = _URL.sub(lambda match: _clean_url(match[0]), text)
        spans = self._spans(text)
        return text if not spans else "".join(_cut(text, 0, spans, MASK))

    def value(self, value: Any, name: str = "") -> Any:
        """A JSON value without secrets, as a new value."""
        if isinstance(value, str):
            return MASK if len(value) >= 6 and _SECRET_FIELD.search(name) else self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(inner, key) for key, inner in value.items()}
        return [self.value(inner, name) for inner in value] if isinstance(value, list) else value

    def pieces(self, pieces: Sequence[bytes]) -> list[bytes]:
        """The pieces of an answer's body without secrets; those without any stay as they are."""
        whole = b"".join(pieces)
        # escapes hide from a search where a word ends; blanks of the same length keep the places
        plain = _ESCAPE.sub(lambda match: b" " * len(match[0]), whole)
        spans = self._spans(plain.decode("latin-1")) + self._scattered(plain)
        if not spans:
            return list(pieces)
        spans = _merged(spans)
        done, position = [], 0
        for piece in pieces:
            done.append(b"".join(_cut(piece, position, spans, MASK.encode())))
            position += len(piece)
        return done

    def _spans(self, text: str) -> list[Span]:
        spans = [] if self._known is None else [match.span() for match in self._known.finditer(text)]
        if self._shapes:
            spans += [span for span in key_spans(text) if not _in_base64(text, span)]
        return _merged(spans)

    def _scattered(self, plain: bytes) -> list[Span]:
        """Secrets that stand in several JSON strings of the same name, one after the other: streamed by a model."""
        fragments: dict[bytes, list[Span]] = defaultdict(list)
        name = b""
        for match in _STRING.finditer(plain):
            if match[2]:
                name = match[1]
            elif match[1]:
                fragments[name].append(match.span(1))
        found: list[Span] = []
        for places in fragments.values():
            if len(places) < 2:
                continue
            text = b"".join(plain[start:end] for start, end in places).decode("latin-1")
            for start, end in self._spans(text):
                found += _located(start, end, places)
        return found


def url_secrets(url: str) -> set[str]:
    """What a URL carries of secrets: its password, and the parameters that are called keys or tokens."""
    parts = urlsplit(url)
    found = {value for name, value in parse_qsl(parts.query) if _SECRET_PARAMETER.search(name)}
    return found | ({unquote(parts.password)} if parts.password else set())


def public_query(query: str) -> list[tuple[str, str]]:
    """The parameters of a URL's query that hold no secret, sorted."""
    return sorted((name, value) for name, value in parse_qsl(query) if not _SECRET_PARAMETER.search(name))


def _clean_url(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    given = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in given if not _SECRET_PARAMETER.search(name)]
    if host == parts.netloc and len(kept) == len(given):
        return url
    return urlunsplit(parts._replace(netloc=host, query=urlencode(kept)))


def _in_base64(text: str, span: Span) -> bool:
    """Whether that place is inside of a long run of base64, where any shape turns up by chance."""
    run = _RUN.match(text, span[0])
    end = run.end() if run else span[1]
    start = span[0]
    limit = max(0, end - LONGEST_KEY - 1)
    while start > limit and (text[start - 1].isalnum() or text[start - 1] in "+/=_-"):
        start -= 1
    return end - start > LONGEST_KEY and "." not in text[span[0] : span[1]]


def _located(start: int, end: int, places: Sequence[Span]) -> list[Span]:
    """The part [start, end) of the fragments joined, as spans of the text that they come from."""
    spans, position = [], 0
    for first, last in places:
        size = last - first
        lower, upper = max(start - position, 0), min(end - position, size)
        if lower < upper:
            spans.append((first + lower, first + upper))
        position += size
    return spans


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _cut(piece: Any, offset: int, spans: Sequence[Span], mask: Any) -> Iterable[Any]:
    """``piece``, which begins at ``offset``, with the mask where a span begins and nothing where it goes on."""
    position, last = offset, offset + len(piece)
    for start, end in spans:
        if end <= position or start >= last:
            continue
        yield piece[position - offset : max(start, position) - offset]
        if start >= position:
            yield mask
        position = min(end, last)
    yield piece[position - offset :]
