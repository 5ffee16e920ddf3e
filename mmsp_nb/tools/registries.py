"""`ToolRegistry`: tools by name, always in their latest definition; and the `tool` decorator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar, overload

from mmsp_nb.protocol.items import ToolSchema
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools.definition import OPTIONS, Options, Tool
from mmsp_nb.tools.hints import ToolDefinitionError, python_name

__all__ = ["ToolRegistry", "Tools", "registry", "registry_of", "tool"]

F = TypeVar("F", bound=Callable[..., Any])

Lookup = Callable[[str], Any]


class ToolRegistry:
    """Tools by name, in the order in which they were added. Adding a name again replaces the tool.

    A function that was defined anew since it was added, by running its cell again, is called in its latest
    definition: it is looked for in `tools.registry`, and by ``lookup``, a function from a Python name to what
    the name stands for now (None when it stands for nothing). A registry without a ``lookup`` of its own uses
    that of `tools.registry`.
    """

    def __init__(self, *functions: Callable[..., Any] | Tool | str, lookup: Lookup | None = None) -> None:
        self.lookup = lookup
        self._tools: dict[str, Tool] = {}
        self._redefined: set[str] = set()
        self.add(*functions)

    def add(self, *functions: Callable[..., Any] | Tool | str) -> None:
        """Add functions or tools, or by name what `tools.registry` or the lookup knows.

        Raises ToolDefinitionError, and then adds none of them.
        """
        made = [self._find(each) if isinstance(each, str) else Tool.of(each) for each in functions]
        self._tools.update((each.name, each) for each in made)
        self._redefined -= {each.name for each in made}

    def remove(self, name: str) -> None:
        """Remove a tool; KeyError when there is none of that name."""
        del self._tools[name]

    def get(self, name: str) -> Tool | None:
        """The tool of that name in its latest definition, or None."""
        tool = self._tools.get(name)
        if tool is None:
            return None
        latest = self._latest(tool)
        if latest is not tool:
            self._tools[name] = latest
            if latest.function is not tool.function:
                self._redefined.add(name)
        return latest

    def redefined(self, name: str) -> bool:
        """Whether the tool of that name is not the function any more that was added, but its latest definition."""
        return name in self._redefined

    def names(self) -> list[str]:
        return list(self._tools)

    def schemas(self) -> list[ToolSchema]:
        """What a config's ``tools`` takes."""
        return [tool.schema() for tool in self]

    def __iter__(self) -> Iterator[Tool]:
        for name in self.names():
            tool = self.get(name)
            if tool is not None:
                yield tool

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self._tools)})"

    def _lookup(self, name: str) -> Any:
        lookup = self.lookup or registry.lookup
        return None if lookup is None else lookup(name)

    def _find(self, name: str) -> Tool:
        found = registry.get(name)
        if found is not None:
            return found
        function = self._lookup(name)
        if callable(function):
            return Tool.of(function)
        raise ToolDefinitionError(
            f"no tool or function is called {name!r}{did_you_mean(name, registry.names())}", tool=name
        )

    def _latest(self, tool: Tool) -> Tool:
        newest = registry._tools.get(tool.name)
        if newest is not None and newest is not tool and _same_place(newest.function, tool.function):
            tool = newest
        current = self._lookup(python_name(tool.function))
        if current is None or current is tool.function or not _same_place(current, tool.function):
            return tool
        try:
            latest = Tool.of(current)
        except ToolDefinitionError:  # it has become something else: the definition that works stays
            return tool
        return latest if latest.name == tool.name else dataclasses.replace(latest, name=tool.name)


def same_function(a: Any, b: Any) -> bool:
    """Whether two callables are one function, or one definition that was run twice."""
    a, b = (each.function if isinstance(each, Tool) else each for each in (a, b))
    return a is b or a == b or _same_place(a, b)


def _same_place(a: Any, b: Any) -> bool:
    """Whether two functions were made by the same definition, run twice: top-level functions of one module."""
    where = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (a, b)]
    return callable(a) and where[0] == where[1] and where[0][1] is not None and "<locals>" not in where[0][1]


registry = ToolRegistry()
"""The tools that `tool` has registered, for use by name."""


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    thread: bool | None = None,
    ask: bool | Literal["always"] | None = None,
    capture: bool | None = None,
    model_view: Callable[[Any], Any] | None = None,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    thread: bool | None = None,
    ask: bool | Literal["always"] | None = None,
    capture: bool | None = None,
    model_view: Callable[[Any], Any] | None = None,
) -> F | Callable[[F], F]:
    """Make a function a tool: ``@tool``, or ``@tool(name=..., ask=True, timeout=10)``.

    The function itself is returned and stays as it is; it is registered in `tools.registry`, where the latest
    definition of a name wins. In a class body nothing is registered: pass the bound method to a conversation.

    Args:
        name: What the model calls it; default the function's name.
        description: What the model is told; default the docstring.
        timeout: Seconds until its call counts as failed. A synchronous function then runs in a thread.
        thread: Run a synchronous function in a thread of its own instead of the caller's.
        ask: Every call needs a person's word before it runs. A `Policy` that allows the name overrules True,
            nothing overrules "always".
        capture: What the function prints is given to the model beside its result.
        model_view: ``model_view(result)`` is what the model sees of a result: a string, a `View`, a picture, anything.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """
    options = Options(name, description, timeout, thread, ask, capture, model_view)

    def decorate(function: F) -> F:
        try:
            setattr(function, OPTIONS, options)
        except AttributeError:  # a builtin: only the registry knows
            pass
        if not _in_class_body(function):
            registry.add(Tool.of(function, **vars(options)))
        return function

    return decorate if function is None else decorate(function)


def _in_class_body(function: Any) -> bool:
    if isinstance(function, staticmethod | classmethod):
        return True
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    return bool(outer) and not outer.endswith("<locals>") and hasattr(function, "__code__")


Tools = ToolRegistry | Callable[..., Any] | Tool | str | Iterable[Callable[..., Any] | Tool | str]
"""The forms in which tools are given."""


def registry_of(tools: Tools | None, among: ToolRegistry | None = None) -> ToolRegistry:
    """``tools`` as a registry: a registry itself, one function, tool or name, several, or None for none.

    Names are those of ``among`` before all others.
    """
    if isinstance(tools, ToolRegistry):
        return tools
    if tools is None:
        return ToolRegistry()
    if isinstance(tools, str | Tool) or callable(tools):
        tools = [tools]
    if not isinstance(tools, Iterable):
        raise TypeError(f"tools must be a function or a list of functions, not {tools!r:.80}")
    own = ToolRegistry() if among is None else among
    try:
        return ToolRegistry(*(own.get(tool) or tool if isinstance(tool, str) else tool for tool in tools))
    except ToolDefinitionError as error:
        name = getattr(error, "tool", None)
        if near := did_you_mean(name, own.names()) if isinstance(name, str) and name in tools else "":
            raise ToolDefinitionError(f"no tool or function is called {name!r}{near}", tool=name) from None
        raise
