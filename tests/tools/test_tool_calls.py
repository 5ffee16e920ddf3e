from __future__ import annotations

import asyncio
import contextvars
import datetime
import enum
import functools
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field

from mmsp_nb.protocol.errors import AbortError
from mmsp_nb.tools import Tool, ToolRegistry, interrupted, prepare, run_calls, tool

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call.done", "name": name, "arguments": arguments, "tool_call_id": f"id-{name}"}


def run(function: Any, /, **arguments: Any):
    tool = Tool.of(function)
    return prepare(ToolRegistry(tool), call(tool.name, **arguments)).run()


class Unit(enum.Enum):
    CELSIUS = "C"


@dataclass
class Point:
    x: int
    y: int = 0


class City(BaseModel):
    name: str


# arguments


def test_arguments_are_coerced_to_the_annotated_types():
    def f(
        when: datetime.date,
        path: Path,
        unit: Unit,
        point: Point,
        cities: list[City],
        tags: set[str],
        pair: tuple[int, str],
        ratio: float,
    ):
        return when, path, unit, point, cities, tags, pair, ratio

    outcome = run(
        f,
        when="2026-03-01",
        path="a/b",
        unit="C",
        point={"x": 1},
        cities=[{"name": "Brest"}],
        tags=["a", "a"],
        pair=[1, "b"],
        ratio=2,
    )
    assert outcome.status == "ok"
    assert outcome.value == (
        datetime.date(2026, 3, 1),
        Path("a/b"),
        Unit.CELSIUS,
        Point(1),
        [City(name="Brest")],
        {"a"},
        (1, "b"),
        2.0,
    )


@pytest.mark.parametrize(
    ("annotation", "given", "taken"),
    [
        (int, "3", 3),
        (bool, "true", True),
        (str, 75001, "75001"),
        (list[int], "[1, 2]", [1, 2]),
        (Point, '{"x": 4}', Point(4)),
        (str, "[1, 2]", "[1, 2]"),
        (str, "half a pair: \ud83d", "half a pair: \ud83d"),
    ],
)
def test_what_models_get_wrong_in_form_only_is_accepted(annotation, given, taken):
    def f(x):
        return x

    f.__annotations__ = {"x": annotation}
    assert run(f, x=given).value == taken


def test_null_for_a_parameter_with_a_default_is_as_if_it_were_left_out():
    def f(x: int = 7):
        return x

    assert run(f, x=None).value == 7


def test_defaults_are_the_functions_own():
    marker: list[int] = []

    def f(a: list[int] = marker, b: int = Field(5), c: list[int] = Field(default_factory=lambda: [1])):  # noqa: B008
        return a, b, c

    value = run(f).value
    assert value[0] is marker
    assert value[1:] == (5, [1])


def test_positional_only_and_bound_parameters():
    def f(a: int = 1, b: int = 2, /, *, c: int = 3):
        return a, b, c

    assert run(f, b=5).value == (1, 5, 3)
    assert run(functools.partial(f, c=9), a=4).value == (4, 2, 9)


def test_unannotated_numbers_keep_their_kind():
    def f(n=1):
        return n

    assert repr(run(f, n=2).value) == "2"
    assert repr(run(f, n=2.5).value) == "2.5"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({}, ["city is missing"]),
        ({"citty": "Brest"}, ["there is no argument 'citty'; did you mean 'city'?", "city is missing"]),
        ({"city": ["Brest"]}, ["city: Input should be a valid string", '(got ["Brest"])']),
        ({"city": "Brest", "days": "many"}, ["days: Input should be a valid integer"]),
        ({"city": "Brest", "days": 9}, ["days: Input should be less than or equal to 7"]),
    ],
)
def test_a_wrong_call_is_corrected_and_not_run(arguments, parts):
    def forecast(city: str, days: Annotated[int, Field(le=7)] = 1):
        raise AssertionError("was run")

    outcome = run(forecast, **arguments)
    assert outcome.status == "invalid"
    assert outcome.value is None and isinstance(outcome.error, ValueError)
    for part in parts:
        assert part in outcome.text
    assert outcome.text.endswith("Expected forecast(city: string, days?: integer)")


def test_a_correction_is_short_whatever_the_model_sent():
    def f(x: list[int]): ...

    outcome = run(f, x=["no number " * 1000] * 1000)
    assert outcome.status == "invalid" and len(outcome.text) < 2000


def test_a_failing_validator_or_default_factory_is_a_correction_too():
    def fail(value):
        raise RuntimeError("not today")

    def f(x: Annotated[int, AfterValidator(fail)]): ...

    def g(x: int = Field(default_factory=lambda: 1 / 0)): ...

    assert "x: RuntimeError: not today" in run(f, x=1).text
    assert "ZeroDivisionError" in run(g).text


@pytest.mark.parametrize("arguments", [None, [1], "x"])
def test_arguments_that_are_no_object_are_refused(arguments):
    def f(): ...

    prepared = prepare(ToolRegistry(f), {**call("f"), "arguments": arguments})
    assert prepared.run().status == "invalid"


def test_an_unknown_tool_lists_the_known_ones():
    def get_weather(): ...

    def get_tides(): ...

    outcome = prepare(ToolRegistry(get_weather, get_tides), call("get_wether")).run()
    assert outcome.status == "unknown" and outcome.tool is None
    assert outcome.text == (
        "There is no tool 'get_wether'; did you mean 'get_weather'? Known tools: get_weather, get_tides."
    )
    assert prepare(ToolRegistry(), call("x")).run().text == "There is no tool 'x'. There are no tools."


# running


def test_an_outcome_keeps_the_object_and_answers_the_call():
    result = {"temperature": 21.5}

    def f():
        return result

    outcome = run(f)
    assert outcome.result is outcome.value is result
    assert (outcome.name, outcome.arguments, outcome.ok) == ("f", {}, True)
    assert outcome.duration >= 0
    assert outcome.item() == {"type": "tool_result.done", "text": '{"temperature":21.5}', "tool_call_id": "id-f"}


def test_an_exception_is_told_to_the_model_and_kept_for_the_user():
    error = KeyError("no such port")

    def f():
        raise error

    outcome = run(f)
    assert outcome.status == "error" and outcome.error is error
    assert outcome.text == "Error: KeyError: 'no such port'"


def test_an_exceptions_text_is_bounded_and_shows_no_key():
    def f():
        raise ValueError("refused sk-proj-aB3dE5gH7jK9mN1pQ3s " + "x" * 10_000)

    outcome = run(f)
    assert "aB3dE5gH7jK9" not in outcome.text and len(outcome.text) < 2_200


def test_a_stop_inside_a_tool_passes_through():
    def f():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(f)


@pytest.mark.parametrize("error", [asyncio.CancelledError, AbortError])
@pytest.mark.parametrize("thread", [False, True])
async def test_a_cancellation_that_a_tool_raises_itself_is_a_failure_like_any_other(error, thread):
    def sync():
        raise error("mine")

    async def awaits():
        task = asyncio.ensure_future(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(task.cancel)
        await task

    async def raises():
        raise error("mine")

    def gives_a_coroutine():
        return raises()

    registry = ToolRegistry(Tool.of(sync, thread=thread), awaits, raises, Tool.of(gives_a_coroutine, thread=thread))
    outcomes = await run_calls([prepare(registry, call(name)) for name in registry.names()])
    assert [outcome.status for outcome in outcomes] == ["error"] * 4
    assert outcomes[0].text == f"Error: {error.__name__}: mine"


async def test_a_task_that_is_being_cancelled_ends_though_a_tool_runs_in_it():
    entered = asyncio.Event()

    async def waits():
        entered.set()
        await asyncio.Event().wait()

    work = asyncio.ensure_future(run_calls([prepare(ToolRegistry(waits), call("waits"))]))
    await entered.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_a_tool_that_cancels_the_task_it_runs_in_ends_it():
    def cancels():
        asyncio.current_task().cancel()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(run_calls([prepare(ToolRegistry(cancels), call("cancels"))]))


def test_a_tool_that_exits_the_interpreter_only_fails():
    def f():
        raise SystemExit(2)

    assert run(f).text == "Error: SystemExit: 2"


def test_a_generators_values_are_the_result_and_it_is_closed():
    closed = []

    def endless():
        try:
            n = 0
            while True:
                yield (n := n + 1)
        finally:
            closed.append(True)

    def three():
        yield from "abc"

    assert run(three).value == ["a", "b", "c"]
    assert len(run(endless).value) == 10_000
    assert closed == [True]


async def test_synchronous_tools_run_in_order_on_the_calling_thread():
    seen = []

    def first():
        seen.append(("first", threading.current_thread()))

    def second():
        seen.append(("second", threading.current_thread()))

    registry = ToolRegistry(first, second)
    outcomes = await run_calls([prepare(registry, call("second")), prepare(registry, call("first"))])
    here = threading.current_thread()
    assert seen == [("second", here), ("first", here)]
    assert [outcome.name for outcome in outcomes] == ["second", "first"]


async def test_asynchronous_tools_run_together():
    arrived: list[str] = []
    all_there = asyncio.Event()

    def meet(name):
        async def f():
            arrived.append(name)
            if len(arrived) == 3:
                all_there.set()
            await asyncio.wait_for(all_there.wait(), 5)
            return name

        f.__name__ = name
        return f

    registry = ToolRegistry(meet("a"), meet("b"), meet("c"))
    outcomes = await run_calls([prepare(registry, call(name)) for name in "abc"])
    assert [outcome.value for outcome in outcomes] == ["a", "b", "c"]


async def test_coroutines_from_plain_functions_and_async_generators_are_awaited():
    async def inner():
        return 5

    def plain():
        return inner()

    async def numbers():
        yield 1
        yield 2

    async def endless():
        while True:
            yield 0

    def threaded():
        return inner()

    async def fails():
        raise ValueError("late")

    def plain_fails():
        return fails()

    registry = ToolRegistry(plain, numbers, endless, plain_fails, Tool.of(threaded, thread=True))
    calls = [prepare(registry, call(name)) for name in ("plain", "numbers", "threaded", "endless", "plain_fails")]
    outcomes = await run_calls(calls)
    assert [o.value for o in outcomes[:3]] == [5, [1, 2], 5]
    assert [o.text for o in outcomes[:3]] == ["5", "[1,2]", "5"]
    assert len(outcomes[3].value) == 10_000
    assert outcomes[4].text == "Error: ValueError: late"


async def test_a_threaded_tool_runs_elsewhere_with_the_callers_context():
    def where():
        return threading.current_thread(), variable.get()

    variable.set("mine")
    [outcome] = await run_calls([prepare(ToolRegistry(Tool.of(where, thread=True)), call("where"))])
    thread, value = outcome.value
    assert thread is not threading.current_thread() and thread.daemon
    assert value == "mine"


async def test_a_timeout_ends_the_wait():
    release = threading.Event()

    async def slow():
        await asyncio.Event().wait()

    def stuck():
        release.wait(10)

    def raises():
        raise TimeoutError("its own")

    registry = ToolRegistry(Tool.of(slow, timeout=0.02), Tool.of(stuck, timeout=0.02), Tool.of(raises, timeout=5))
    outcomes = await run_calls([prepare(registry, call(name)) for name in ("slow", "stuck", "raises")])
    release.set()
    assert [outcome.status for outcome in outcomes] == ["timeout", "timeout", "error"]
    assert outcomes[0].text == "Error: no result within 0.02 s"
    assert isinstance(outcomes[0].error, TimeoutError)
    assert outcomes[2].text == "Error: TimeoutError: its own"


async def test_each_call_is_reported_also_a_refused_one():
    def f():
        return 1

    async def g():
        return 2

    events: list[dict[str, Any]] = []
    registry = ToolRegistry(f, g)
    await run_calls([prepare(registry, call(name)) for name in ("f", "g", "h")], events.append)
    starts = [event["call"]["name"] for event in events if event["type"] == "tool_start"]
    ends = {event["outcome"].name: event["outcome"].status for event in events if event["type"] == "tool_end"}
    assert sorted(starts) == ["f", "g", "h"]
    assert ends == {"f": "ok", "g": "ok", "h": "unknown"}


async def test_a_host_can_run_tools_its_own_way():
    ran = []

    def f():
        return 1

    async def g():
        return 2

    async def sync_elsewhere(prepared):
        ran.append(("sync", prepared.call["name"]))
        return prepared.run()

    async def async_wrapped(prepared):
        ran.append(("async", prepared.call["name"]))
        return await prepared.arun()

    calls = [prepare(ToolRegistry(f, g), call(name)) for name in ("f", "g")]
    outcomes = await run_calls(calls, run_sync=sync_elsewhere, run_async=async_wrapped)
    assert sorted(ran) == [("async", "g"), ("sync", "f")]
    assert [outcome.value for outcome in outcomes] == [1, 2]


async def test_a_stop_in_one_tool_cancels_the_others():
    cancelled = asyncio.Event()

    class Stop(BaseException): ...

    entered = asyncio.Event()

    async def waits():
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def stops():
        await entered.wait()
        raise Stop

    registry = ToolRegistry(waits, stops)
    with pytest.raises(Stop):
        await run_calls([prepare(registry, call("waits")), prepare(registry, call("stops"))])
    assert cancelled.is_set()


def test_a_keyboard_interrupt_in_an_async_tool_on_another_thread_stops_without_ending_that_threads_loop():
    from mmsp_nb import loop

    async def f():
        raise KeyboardInterrupt

    async def work():
        return await run_calls([prepare(ToolRegistry(f), call("f"))])

    async def alive():
        return True

    with pytest.raises(AbortError) as caught:
        loop.submit(work()).result(5)
    assert isinstance(caught.value.__cause__, KeyboardInterrupt)
    assert loop.submit(alive()).result(5)


def test_an_interrupted_call_has_an_answer_too():
    outcome = interrupted(call("f"))
    assert outcome.status == "interrupted"
    assert outcome.item()["tool_call_id"] == "id-f" and "Interrupted" in outcome.item()["text"]


# registry


def test_the_decorator_returns_the_function_itself_and_registers_it(monkeypatch):
    from mmsp_nb import tools

    monkeypatch.setattr(tools.registry, "_tools", {})

    @tool
    def plain(x: int):
        return x

    @tool(name="other", description="Told.", timeout=3)
    async def named(): ...

    assert plain(3) == 3
    assert tools.registry.names() == ["plain", "other"]
    other = tools.registry.get("other")
    assert other.function is named and other.description == "Told." and other.timeout == 3
    assert Tool.of(named).name == "other", "the function remembers what the decorator was told"


def test_a_decorated_method_is_a_tool_when_it_is_bound(monkeypatch):
    from mmsp_nb import tools

    monkeypatch.setattr(tools.registry, "_tools", {})

    class Home:
        @tool(name="read_room")
        def read(self, room: str):
            return room, self

    assert len(tools.registry) == 0
    home = Home()
    bound = Tool.of(home.read)
    assert bound.name == "read_room" and list(bound.parameters["properties"]) == ["room"]
    assert run(home.read, room="hall").value == ("hall", home)


def test_adding_a_name_again_replaces_the_tool():
    def make(value):
        def f():
            return value

        return f

    registry = ToolRegistry(make(1))
    registry.add(make(2))
    assert len(registry) == 1 and "f" in registry
    assert prepare(registry, call("f")).run().value == 2
    registry.remove("f")
    assert registry.get("f") is None and registry.schemas() == []


def test_a_function_defined_anew_in_the_notebook_is_called_in_its_latest_definition():
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def cell(text):
        exec(compile(text, "<cell>", "exec"), namespace)

    cell("def double(x: int): return 2 * x")
    registry = ToolRegistry(namespace["double"], lookup=namespace.get)
    assert prepare(registry, call("double", x=2)).run().value == 4
    cell("def double(x: int, y: int = 1): return 20 * x + y")
    assert prepare(registry, call("double", x=2, y=3)).run().value == 43
    assert list(registry.schemas()[0]["parameters"]["properties"]) == ["x", "y"]
    # the name stands for something else now: the tool stays what it was
    cell("double = 3")
    assert prepare(registry, call("double", x=1)).run().value == 21
    cell("def double(*args): ...")
    assert prepare(registry, call("double", x=1)).run().value == 21


def test_a_decorated_function_defined_anew_is_found_through_the_shared_registry(monkeypatch):
    from mmsp_nb import tools

    monkeypatch.setattr(tools.registry, "_tools", {})
    namespace: dict[str, Any] = {"__name__": "__main__", "tool": tool}

    def cell(text):
        exec(compile(text, "<cell>", "exec"), namespace)

    cell("@tool(name='answer')\ndef f(): return 1")
    mine = ToolRegistry(namespace["f"])
    cell("@tool(name='answer')\ndef f(): return 2")
    assert prepare(mine, call("answer")).run().value == 2


def test_tools_can_be_added_by_name(monkeypatch):
    from mmsp_nb import tools

    monkeypatch.setattr(tools.registry, "_tools", {})

    @tool
    def registered(): ...

    def in_the_notebook(): ...

    registry = ToolRegistry("registered", "nb", lookup={"nb": in_the_notebook}.get)
    assert registry.names() == ["registered", "in_the_notebook"]
    with pytest.raises(ValueError, match=r"'registred'; did you mean 'registered'\?"):
        registry.add("registred")


def test_when_one_of_several_cannot_be_added_none_is():
    def good(): ...

    registry = ToolRegistry()
    with pytest.raises(TypeError):
        registry.add(good, 3)  # type: ignore[arg-type]
    assert registry.names() == []
