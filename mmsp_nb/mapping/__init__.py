"""Many rows: one question to a model for each row of a list or table, with typed answers in order.

`map` and `amap` are public as ``mmsp_nb.map`` and ``mmsp_nb.amap``; docs/many-rows.md is about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from mmsp_nb.mapping.plan import Plan
from mmsp_nb.mapping.prompts import Prompts
from mmsp_nb.mapping.results import MapError, Mapped, NotAskedError
from mmsp_nb.mapping.rows import Rows
from mmsp_nb.mapping.running import Run, unfinished
from mmsp_nb.protocol.suggestions import did_you_mean

if TYPE_CHECKING:
    from mmsp_nb.tools import Policy
    from mmsp_nb.tools.registries import Tools
    from mmsp_nb.transport.cassette import Cassette

__all__ = ["OPTIONS", "MapError", "Mapped", "NotAskedError", "amap", "checked_names", "map", "unfinished"]

OPTIONS = frozenset(
    ("limit", "concurrency", "retries", "timeout", "budget", "on_error", "progress", "checkpoint", "dedupe", "resume")
)
"""What a run takes; all else belongs to the plan."""

_PLAN = frozenset(
    ("type", "model", "client", "system", "tools", "config", "policy", "max_turns", "cassette", "executor", "mask_keys")
)
_CLIENT = frozenset(("api_key", "base_url", "client_type", "default_headers", "transport"))


def map(
    rows: Any,
    prompt: str | Callable[[Any], Any] | None = None,
    *,
    type: Any = None,
    images: str | Sequence[str] | Callable[[Any], Any] | None = None,
    names: Mapping[str, Any] | None = None,
    model: str | None = None,
    client: Any = None,
    system: str | None = None,
    tools: Tools | None = None,
    config: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    max_turns: int = 10,
    limit: str | Iterable[str] | None = None,
    concurrency: int | None = None,
    retries: int = 4,
    timeout: float | None = None,
    budget: Decimal | float | str | None = None,
    on_error: Literal["value", "raise"] = "value",
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    cassette: str | PathLike[str] | Cassette | None = None,
    executor: Executor | None = None,
    dedupe: bool = False,
    resume: bool = True,
    mask_keys: bool = True,
    **client_options: Any,
) -> Mapped:
    """Ask a model about each row, and return the answers in the order of the rows. Blocks; works in cells and scripts.

    ::

        topics = mmsp_nb.map(frame, "What is this about: {{text}}", type=Topic, limit="60/min")
        topics.to_frame()

    Args:
        rows: A list, a table or column (pandas, polars, pyarrow), a dict, a generator of any length.
        prompt: A text in which ``{{expressions}}`` stand for a row's columns or fields, for ``row`` itself and its
            ``index``; or a function of the row that returns what `Conversation.ask` takes, or a list of messages. None
            when the rows are prompts.
        type: What each answer is to be, as in `Conversation.ask`.
        images: Columns with pictures (URLs, paths, bytes, PIL images), or a function of the row that returns them.
        names: Other variables for expressions, for instance ``globals()``.
        model, client, client_options: Who answers, as in `Conversation`; a client needs ``sibling()``.
        system, config, tools, policy, max_turns: As in `Conversation`. Nobody is asked about tools that ask.
        limit: ``"60/min"``, ``"100k tokens/min"``, both with a comma, ``"2/s"``. Kept over any stretch of that length.
        concurrency: Requests on their way at once; default 8, or the number of the executor's workers.
        retries: Further tries of a request that failed in passing. A refusal for too many requests slows all rows
            down, for as long as the provider wants; it counts apart.
        timeout: Seconds for one whole answer; default none, beside the limits of the transport.
        budget: US dollars by list price. Refused at once when the rows alone cost more; else no further row is asked
            when it is used up.
        on_error: "value" puts a `MapError` in the row's place, "raise" ends the run with the first one.
        progress: A bar with the cost so far; default when somebody watches.
        checkpoint: A file that keeps each answer as it comes; another run asks only what is not in it.
        cassette: A recording of all requests, as in `Conversation`.
        executor: Makes the requests: threads, processes, or Dask's ``client.get_executor()``. Keys are not sent there.
        dedupe: Ask rows that ask the same only once.
        mask_keys: Replace keys by ``***`` in what is sent to the model, as in `Conversation`; `Mapped.masked` counts.
        resume: Take answers from a checkpoint, and from a run of this process that did not come to its end.

    Raises:
        ValueError, TypeError: an argument that cannot work, in one line; nothing was sent.
        KeyboardInterrupt: what was answered is remembered: the same call again asks only the others.
        MMSPError: no row was answered, and none can be (a wrong key, say); or the first error with "raise".
    """
    return _run(locals()).block()


async def amap(
    rows: Any,
    prompt: str | Callable[[Any], Any] | None = None,
    *,
    type: Any = None,
    images: str | Sequence[str] | Callable[[Any], Any] | None = None,
    names: Mapping[str, Any] | None = None,
    model: str | None = None,
    client: Any = None,
    system: str | None = None,
    tools: Tools | None = None,
    config: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    max_turns: int = 10,
    limit: str | Iterable[str] | None = None,
    concurrency: int | None = None,
    retries: int = 4,
    timeout: float | None = None,
    budget: Decimal | float | str | None = None,
    on_error: Literal["value", "raise"] = "value",
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    cassette: str | PathLike[str] | Cassette | None = None,
    executor: Executor | None = None,
    dedupe: bool = False,
    resume: bool = True,
    mask_keys: bool = True,
    **client_options: Any,
) -> Mapped:
    """`map` for async code: runs on the caller's event loop. A cancellation ends it as an interrupt ends `map`."""
    return await _run(locals()).wait()


def _run(arguments: dict[str, Any]) -> Run:
    options = arguments.pop("client_options")
    checked_names(options, "map")
    given = {**arguments, **options}
    source, prompt = given.pop("rows"), given.pop("prompt")
    images, names = given.pop("images"), given.pop("names")
    rows = Rows(source)
    prompts = Prompts(rows, prompt, images, names)
    plan = Plan(**{name: value for name, value in given.items() if name not in OPTIONS})
    return Run(Mapped(plan, rows, prompts, given))


def checked_names(given: Iterable[str], function: str) -> None:
    """Raise TypeError for an option that there is not."""
    known = OPTIONS | _PLAN | _CLIENT
    for name in given:
        if name not in known:
            from mmsp_nb.protocol.items import UniConfig

            if name in UniConfig.__annotations__:
                raise TypeError(f"{name!r} belongs into the config: config={{{name!r}: ...}}")
            raise TypeError(f"{function}() has no option {name!r}{did_you_mean(name, known)}")
