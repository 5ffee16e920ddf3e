"""Calls of a model -> outcomes: arguments are validated, the function is run, whatever happens is a result."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from mmsp_nb import telemetry
from mmsp_nb.interrupts import cancelling
from mmsp_nb.protocol.errors import AbortError
from mmsp_nb.protocol.items import Item
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools.arguments import InvalidArguments, bind
from mmsp_nb.tools.capture import run_captured
from mmsp_nb.tools.definition import Tool
from mmsp_nb.tools.registries import ToolRegistry
from mmsp_nb.tools.views import View, cut, error_text, short, view

__all__ = [
    "HELD",
    "INTERRUPTED",
    "PreparedCall",
    "Report",
    "ToolOutcome",
    "held",
    "interrupted",
    "prepare",
    "run_calls",
]

Status = Literal["ok", "error", "unknown", "invalid", "interrupted", "timeout", "denied", "held"]
Report = Callable[[dict[str, Any]], None]
Run = Callable[["PreparedCall"], Awaitable["ToolOutcome"]]

INTERRUPTED = "Interrupted before there was a result."
REDEFINED = "the latest definition of the function"
HELD = "Not run yet: it waits for the user."

MAX_CORRECTION = 1_500
MAX_YIELDED = 10_000
"""Values taken from a tool that is a generator."""


@dataclass(repr=False)
class ToolOutcome:
    """What became of one call. ``value`` is the real object, ``text`` and ``images`` what the model sees.

    ``duration`` is in seconds. ``error`` is the exception of a call that failed, ``tool`` None for an unknown name.
    ``note`` is for the person, for instance that the latest definition was called, and ``html`` is what a host has made
    of the value for them: safe HTML, beyond the text.
    """

    call: Item
    tool: Tool | None
    value: Any = None
    text: str = ""
    images: list[str] = field(default_factory=list)
    error: BaseException | None = None
    duration: float = 0.0
    status: Status = "ok"
    note: str = ""
    html: str = ""

    @property
    def name(self) -> str:
        name: str = self.call["name"]
        return name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the model gave them."""
        arguments: dict[str, Any] = self.call["arguments"]
        return arguments

    @property
    def result(self) -> Any:
        """The object that the function returned; None unless ``ok``."""
        return self.value

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def item(self) -> Item:
        """The ``tool_result.done`` item that answers the call."""
        item: Item = {"type": "tool_result.done", "text": self.text, "tool_call_id": self.call["tool_call_id"]}
        return {**item, "images": list(self.images)} if self.images else item

    def __repr__(self) -> str:
        given = self.arguments.items() if isinstance(self.arguments, dict) else [("?", self.arguments)]
        arguments = ", ".join(f"{name}={short(value, 60)}" for name, value in given)
        note = f" ({self.note})" if self.note else ""
        return f"<ToolOutcome {self.name}({arguments[:200]}): {self.status}{note}, {short(self.text, 200)}>"


def interrupted(call: Item, tool: Tool | None = None) -> ToolOutcome:
    """The outcome of a call that was never finished, which nevertheless needs an answer."""
    return ToolOutcome(call, tool, text=INTERRUPTED, status="interrupted")


def held(call: Item) -> ToolOutcome:
    """The outcome of a call that was put off: it may still run, but a history needs an answer to it."""
    return ToolOutcome(call, None, text=HELD, status="held")


class PreparedCall:
    """A call with its function and its validated arguments, ready to run once.

    ``refused`` is the outcome of a call that cannot be run, an unknown name or bad arguments; both ways of
    running then return it.
    """

    def __init__(
        self,
        call: Item,
        tool: Tool | None,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        refused: ToolOutcome | None = None,
    ) -> None:
        self.call = call
        self.tool = tool
        self.refused = refused
        self.edited = ""
        self.note = ""
        self.watch = telemetry.NOTHING
        self._args = args
        self._kwargs = kwargs or {}

    @property
    def values(self) -> dict[str, Any]:
        """The validated arguments by name, as the function will get them; defaults of its own included."""
        if self.tool is None or self.refused is not None:
            return {}
        inputs = self.tool.inputs
        positional = zip((each.name for each in inputs if each.positional_only), self._args, strict=False)
        defaults = {each.name: each.default for each in inputs if each.default is not inspect.Parameter.empty}
        return {**defaults, **dict(positional), **self._kwargs}

    def deny(self, reason: str) -> PreparedCall:
        """Refuse it: the function is not run, and the model gets ``reason`` as the result."""
        self.refused = ToolOutcome(self.call, self.tool, text=reason, status="denied")
        return self

    @property
    def on_loop(self) -> bool:
        """Whether `arun` is the way to run it: an async tool, or one with ``thread=True``."""
        return self.refused is None and self.tool is not None and self.tool.on_loop

    def run(self) -> ToolOutcome:
        """Run a synchronous tool here and now. An exception becomes an outcome; KeyboardInterrupt passes.

        Of a generator the value is the list of what it yields. A plain function may return a coroutine:
        that is then the value, until `resolve` has awaited it.
        """
        if self.refused is not None or self.tool is None:
            return self.refused or interrupted(self.call)
        begin = time.monotonic()
        try:
            value = self._invoke()
            if inspect.isgenerator(value):
                with contextlib.closing(value):
                    value = list(islice(value, MAX_YIELDED))
        except (Exception, SystemExit) as error:
            return self._failed(error, begin)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            return self._failed(error, begin)
        return self._succeeded(value, begin)

    async def arun(self) -> ToolOutcome:
        """Run an asynchronous tool on this loop, or a ``thread=True`` one in a thread, within its timeout.

        An exception becomes an outcome; CancelledError passes when this task is being cancelled. One that the
        tool itself raises, or that comes out of what it awaits, is an exception like any other.
        """
        if self.refused is not None or self.tool is None:
            return self.refused or interrupted(self.call)
        begin = time.monotonic()
        deadline = asyncio.timeout(self.tool.timeout)
        try:
            async with deadline:
                if self.tool.thread:
                    outcome = await _in_thread(self.run, f"tool {self.tool.name}")
                    return await self.resolve(outcome)
                value = await _awaited(self._invoke())
        except TimeoutError as error:
            return self._timed_out(error, begin) if deadline.expired() else self._failed(error, begin)
        except (Exception, SystemExit) as error:
            return self._failed(error, begin)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            return self._failed(error, begin)
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise
            # it would end the thread of a background loop
            raise AbortError(f"KeyboardInterrupt in tool {self.tool.name}") from error
        return self._succeeded(value, begin)

    async def resolve(self, outcome: ToolOutcome) -> ToolOutcome:
        """``outcome`` of `run` with its value awaited, when that is a coroutine or an async generator."""
        if not _is_pending(outcome.value):
            return outcome
        begin = time.monotonic() - outcome.duration
        try:
            return self._succeeded(await _awaited(outcome.value), begin)
        except (Exception, SystemExit) as error:
            return self._failed(error, begin)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            return self._failed(error, begin)

    def _invoke(self) -> Any:
        assert self.tool is not None
        with self.watch.active():  # on whatever thread this is
            return self.tool.function(*self._args, **self._kwargs)

    def _succeeded(self, value: Any, begin: float) -> ToolOutcome:
        if _is_pending(value):
            return ToolOutcome(self.call, self.tool, value=value, duration=time.monotonic() - begin)
        try:
            shown = self.tool.model_view(value) if self.tool is not None and self.tool.model_view else value
        except Exception as error:  # the tool itself has worked
            seen = view(value)
            seen = View(f"{seen.text}\n(the tool's model_view failed: {error_text(error)})", seen.images)
        else:
            seen = view(shown)
        text = f"(The user changed the arguments to {self.edited}.)\n{seen.text}" if self.edited else seen.text
        duration = time.monotonic() - begin
        return ToolOutcome(self.call, self.tool, value, text, list(seen.images), duration=duration, note=self.note)

    def _failed(self, error: BaseException, begin: float) -> ToolOutcome:
        text = f"Error: {error_text(error)}"
        duration = time.monotonic() - begin
        failed = ToolOutcome(self.call, self.tool, text=text, error=error, duration=duration, status="error")
        failed.note = self.note
        return failed

    def _timed_out(self, error: BaseException, begin: float) -> ToolOutcome:
        assert self.tool is not None
        text = f"Error: no result within {self.tool.timeout:g} s"
        duration = time.monotonic() - begin
        return ToolOutcome(self.call, self.tool, text=text, error=error, duration=duration, status="timeout")


def prepare(registry: ToolRegistry, call: Item, arguments: Mapping[str, Any] | None = None) -> PreparedCall:
    """Find the tool of a ``tool_call.done`` item and validate its arguments, or ``arguments`` in place of them.

    Never raises for a bad call: it is then ``refused``, with a text that tells the model how to do better.
    """
    tool = registry.get(call["name"])
    if tool is None:
        known = registry.names()
        listed = f"Known tools: {', '.join(known[:50])}." if known else "There are no tools."
        near = did_you_mean(call["name"], known) or "."
        text = f"There is no tool {call['name'][:80]!r}{near} {listed}"
        refused = ToolOutcome(call, None, text=text, error=LookupError(text), status="unknown")
        return PreparedCall(call, None, refused=refused)
    try:
        args, kwargs = bind(tool, call["arguments"] if arguments is None else dict(arguments))
    except InvalidArguments as error:
        text = cut(f"Invalid arguments for {tool.name}: {error}. Expected {tool.usage}", MAX_CORRECTION)
        refused = ToolOutcome(call, tool, text=text, error=error.__cause__ or error, status="invalid")
        return PreparedCall(call, tool, refused=refused)
    prepared = PreparedCall(call, tool, args, kwargs)
    prepared.note = REDEFINED if registry.redefined(tool.name) else ""
    if arguments is not None and dict(arguments) != call["arguments"]:
        prepared.edited = cut(json.dumps(dict(arguments), ensure_ascii=False, default=repr), MAX_CORRECTION)
        prepared.note = "; ".join(part for part in (f"run with {prepared.edited}", prepared.note) if part)
    return prepared


async def run_calls(
    calls: Sequence[PreparedCall],
    report: Report | None = None,
    *,
    run_sync: Run | None = None,
    run_async: Run | None = None,
) -> list[ToolOutcome]:
    """Run the calls of one turn: synchronous tools in order, asynchronous ones together meanwhile.

    Args:
        calls: What `prepare` returned.
        report: Is told of each call, ``{"type": "tool_start", "call": item}`` and
            ``{"type": "tool_end", "outcome": outcome}``.
        run_sync: Awaited in place of `PreparedCall.run` on this thread; refused calls pass through it as well.
        run_async: Awaited in place of `PreparedCall.arun`.

    Returns:
        The outcomes in the order of ``calls``.

    A KeyboardInterrupt or CancelledError in a tool stops the others and passes through.
    """
    tell = report or (lambda event: None)
    run_async = run_async or PreparedCall.arun

    async def one(call: PreparedCall, run: Run) -> ToolOutcome:
        tell({"type": "tool_start", "call": call.call})
        with telemetry.tool(call.call, None if call.tool is None else call.tool.description) as watch:
            call.watch = watch
            with watch.active():
                outcome = await call.resolve(await run(call))
            if outcome.status == "ok":
                watch.done(outcome.item())
            else:
                watch.failed(
                    type(outcome.error).__name__ if outcome.status == "error" else outcome.status, outcome.text
                )
        tell({"type": "tool_end", "outcome": outcome})
        return outcome

    together = {i: asyncio.ensure_future(one(call, run_async)) for i, call in enumerate(calls) if call.on_loop}
    outcomes: dict[int, ToolOutcome] = {}
    try:
        for i, call in enumerate(calls):
            if i not in together:
                outcomes[i] = await one(call, run_sync or _run_here)
        outcomes.update(zip(together, await asyncio.gather(*together.values()), strict=True))
    except BaseException:
        for task in together.values():
            task.cancel()
        if together:
            await asyncio.wait(together.values())
        raise
    return [outcomes[i] for i in range(len(calls))]


def _being_cancelled() -> bool:
    """Whether somebody wants the running task to end; else a CancelledError is the tool's own."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop on this thread: nobody can have cancelled what runs here
        return False
    return task is not None and task.cancelling() > 0


def _is_pending(value: Any) -> bool:
    return inspect.iscoroutine(value) or inspect.isasyncgen(value) or isinstance(value, asyncio.Future)


async def _awaited(value: Any) -> Any:
    """What a coroutine returns, the list of what an async generator yields; anything else is itself."""
    if inspect.isasyncgen(value):
        values: list[Any] = []
        async with contextlib.aclosing(value):
            async for each in value:
                values.append(each)
                if len(values) >= MAX_YIELDED:
                    break
        return values
    return await value if _is_pending(value) else value


async def _run_here(call: PreparedCall) -> ToolOutcome:
    await asyncio.sleep(0)  # what was started before gets its turn, and so does a cancellation
    with cancelling():
        return run_captured(call)


async def _in_thread(function: Callable[[], ToolOutcome], name: str) -> ToolOutcome:
    """`asyncio.to_thread` with a daemon thread: a tool that never returns must not keep the interpreter alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[ToolOutcome] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(outcome: ToolOutcome | None, error: BaseException | None) -> None:
        if future.done():  # timed out or cancelled meanwhile
            return
        if error is not None:
            future.set_exception(error)
        elif outcome is not None:
            future.set_result(outcome)

    def work() -> None:
        outcome = error = None
        try:
            outcome = context.run(function)
        except BaseException as caught:  # KeyboardInterrupt, GeneratorExit: for the loop's side to judge
            error = caught
        try:
            loop.call_soon_threadsafe(deliver, outcome, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    threading.Thread(target=work, name=f"mmsp_nb {name}", daemon=True).start()
    return await future
