"""A case, the loopback provider that answers it, and the result that two implementations are compared by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mmsp_nb.testing import Cut, FakeProvider, Gate, RecordedRequest, Reply

from .driver import to_json

HEADERS = (
    *("authorization", "x-api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta"),
    *("content-type", "accept"),
)
BASE = "{BASE}"


@dataclass
class Case:
    """One scripted use of a client.

    id: ``client type/section/what``.
    client: the constructor's arguments; ``{BASE}`` in any text stands for the provider's address.
    steps: what is done, see `driver`.
    replies: the provider's answers in order. Anything that is not a request to the API gets the pixel.
    """

    id: str
    client: dict[str, Any]
    steps: list[dict[str, Any]]
    replies: list[Reply] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return self.id.rpartition("/")[0]

    def payload(self, base: str = BASE) -> dict[str, Any]:
        """The case as the driver takes it."""
        whole = to_json({"id": self.id, "client": self.client, "steps": self.steps, "env": self.env})
        return json.loads(json.dumps(whole).replace(BASE, base))

    @property
    def digest(self) -> str:
        """Changes with anything the case says, the provider's answers included."""
        replies = [
            [reply.status, dict(reply.headers), reply.hang_up, _content(reply).decode("latin-1")]
            for reply in self.replies
        ]
        return hashlib.sha256(json.dumps([self.payload(), replies], sort_keys=True).encode()).hexdigest()[:12]


def _content(reply: Reply) -> bytes:
    marks: list[bytes] = []
    for part in islice(reply.body, 10_000):  # a body may be endless
        if isinstance(part, bytes):
            marks.append(part)
        elif isinstance(part, Cut):
            marks.append(f"<{part.how}>".encode())
        elif isinstance(part, Gate):
            marks.append(b"<gate>")
    return b"".join(marks)


class Stage:
    """One provider for many cases: each case has its own prefix of the path, its own script and its own records."""

    def __init__(self, picture: bytes) -> None:
        self._provider = FakeProvider()
        self._provider.when(lambda request: True, self._answer)
        self._scripts: dict[str, Iterator[Reply]] = {}
        self._requests: dict[str, list[dict[str, Any]]] = {}
        self._picture = picture
        self._count = 0

    def __enter__(self) -> Stage:
        self._provider.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._provider.close()

    def perform(self, case: Case, run: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """The result of ``case``: what ``run`` reports, and the requests that arrived."""
        self._count += 1
        name = f"case{self._count}"
        self._scripts[name], self._requests[name] = iter(case.replies), []
        base = self._provider.url(f"/{name}")
        result = run(case.payload(base))
        requests = self._requests.pop(name)
        del self._scripts[name]
        if requests:
            result = {**result, "requests": requests}
        return json.loads(json.dumps(result).replace(base, BASE))

    def _answer(self, request: RecordedRequest) -> Reply:
        name, _, rest = request.path[1:].partition("/")
        record: dict[str, Any] = {"method": request.method, "path": "/" + rest}
        if request.query:
            record["query"] = request.query
        wanted = {n: v for n, v in request.headers.items() if n in HEADERS or n.startswith("x-test")}
        if request.method == "GET" or "mbed" in rest:  # there these two are of no consequence
            wanted.pop("accept", None)
            wanted.pop("content-type", None)
        record["headers"] = {n: v.partition(";")[0] if n == "content-type" else v for n, v in wanted.items()}
        if request.body is not None:
            record["body"] = _without_times(to_json(request.body))
        self._requests[name].append(record)
        if rest.endswith((".png", ".jpg", ".bin", ".webp")):
            record["headers"] = {}  # a plain download, whatever the HTTP client calls itself
            return Reply.data(self._picture, "application/octet-stream")
        return next(self._scripts[name], Reply.json({"error": {"message": "no reply left"}}, 400))


def _without_times(value: Any) -> Any:
    """Times of sending (in the bodies of MMSP requests) become ``"<ms>"``."""
    if isinstance(value, list):
        return [_without_times(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "<ms>" if key == "created_at" and isinstance(inner, int) else _without_times(inner)
        for key, inner in value.items()
    }


@dataclass(frozen=True)
class Difference:
    path: str
    reference: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.path}: reference {_short(self.reference)} | ours {_short(self.ours)}"


MISSING = "<missing>"


def differences(reference: Any, ours: Any, path: str = "") -> list[Difference]:
    """Where two results differ. Lists of different length differ as a whole."""
    if isinstance(reference, dict) and isinstance(ours, dict):
        found = []
        for key in [*reference, *(key for key in ours if key not in reference)]:
            below = f"{path}.{key}" if path else key
            found += differences(reference.get(key, MISSING), ours.get(key, MISSING), below)
        return found
    if isinstance(reference, list) and isinstance(ours, list) and len(reference) == len(ours):
        pairs = enumerate(zip(reference, ours, strict=True))
        return [found for n, (a, b) in pairs for found in differences(a, b, f"{path}.{n}")]
    if reference == ours and isinstance(reference, bool) == isinstance(ours, bool):
        return []
    return [Difference(path, reference, ours)]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-80:]}"
