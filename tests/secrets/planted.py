"""Fake keys, each of them somewhere else, and the search for them in whatever was written or shown."""

from __future__ import annotations

import base64
import json
import pickle
import traceback
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from mmsp_nb import AutoLLMClient, Transport
from mmsp_nb.testing import FakeProvider
from mmsp_nb.transport.retry import RetryPolicy
from mmsp_nb.transport.wire import Handler

CLIENT = "clientkey-of-no-known-shape-4455"
ENVIRONMENT = "envkey-of-no-known-shape-667788"
HEADER = "headersecret-of-no-shape-991122"
QUERY = "querysecret-of-no-shape-335577"
USER = "urlpassword-of-no-shape-224466"
PROMPT = "sk-ant-fake0prompt0000000000000000"
RESULT = "ghp_fake1result11111111111111111111"
ERROR = "sk-proj-fake2error222222222222222222"
ALL = {
    "the client's key": CLIENT,
    "the environment's key": ENVIRONMENT,
    "a default header": HEADER,
    "the query of the base URL": QUERY,
    "the password of the base URL": USER,
    "a prompt": PROMPT,
    "a tool's result": RESULT,
    "a tool's error": ERROR,
}


def spellings(secret: str) -> Iterable[str]:
    """The secret as it may look in a file: plain, percent-encoded, base64."""
    plain = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, quote(secret, safe=""), plain, json.dumps(secret)[1:-1]}


def found(text: str | bytes, *, but: Iterable[str] = ()) -> list[str]:
    """Which of the planted secrets stand in ``text``."""
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return [
        name
        for name, secret in ALL.items()
        if name not in but and any(spelling in shown for spelling in spellings(secret))
    ]


def everything_about(error: BaseException) -> str:
    """What a person or a reporting tool gets to see of an error, with the frames of this package's local variables."""
    texts = [str(error), repr(error), repr(error.args), repr(vars(error))]
    texts += traceback.format_exception(error)
    summary = traceback.TracebackException.from_exception(error, capture_locals=True)
    pending: list[Any] = [summary]
    while pending:
        each = pending.pop()
        pending += [inner for inner in (each.__cause__, each.__context__) if inner is not None]
        for frame in each.stack:
            if "mmsp_nb" in frame.filename and "tests" not in frame.filename:
                texts += [f"{frame.name}: {name} = {value}" for name, value in (frame.locals or {}).items()]
    try:
        texts.append(pickle.dumps(error).decode("latin-1"))
    except Exception:  # what cannot be pickled cannot leak that way
        pass
    return "\n".join(texts)


def make(provider: FakeProvider, client_type: str, handler: Handler | None = None) -> AutoLLMClient:
    address = f"http://someone:{USER}@127.0.0.1:{provider.port}/v1?key={QUERY}"
    return AutoLLMClient(
        "a-model",
        CLIENT,
        address,
        client_type,
        {"X-Team-Secret": HEADER},
        transport=Transport(handler=handler, retries=RetryPolicy(0)),
    )


def screen(shell: InteractiveShell, code: str) -> str:
    """Everything that a cell shows: both streams and all forms of its displays."""
    with capture_output() as captured:
        shell.run_cell(code)
    return captured.stdout + captured.stderr + "".join(repr(output.data) for output in captured.outputs)
