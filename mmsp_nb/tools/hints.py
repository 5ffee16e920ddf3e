"""What a callable takes: its parameters with their annotations resolved, its name, its docstring.

Works for functions, coroutine functions, bound methods, partials, decorated functions (through
``functools.wraps``), classes and callable objects. Source text is never read, so functions from
notebook cells, from ``exec`` and from compiled modules are all the same.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mmsp_nb.protocol.errors import MMSPError

__all__ = [
    "Documentation",
    "ToolDefinitionError",
    "documentation",
    "python_name",
    "resolved_parameters",
    "runs_on_loop",
]


class ToolDefinitionError(MMSPError, TypeError):
    """A function that cannot be a tool; ``tool`` is its name. The message is one line and says what to change."""

    fields = {"tool": None}


@dataclass(frozen=True)
class Documentation:
    """A parsed docstring: the text for the model, and what it says about single parameters."""

    description: str
    parameters: dict[str, str]
    types: dict[str, str]


def python_name(function: Callable[..., Any]) -> str:
    """The name under which Python knows ``function``: of the wrapped function, or of the object's class."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def runs_on_loop(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine or an async generator, as far as can be seen from outside."""
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, types.FunctionType | types.MethodType | type):
        function = getattr(type(function), "__call__", function)  # noqa: B004 - the method, not whether there is one
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def resolved_parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """The parameters a caller can fill, annotations resolved to types.

    Keywords that a partial has bound are left out. Raises ToolDefinitionError for a callable without a
    signature, for a method without its object, for ``*args`` and ``**kwargs``, and for annotations that name nothing.
    """
    signature = _signature(function, name)
    inner, bound = _innermost(function)
    _refuse_unbound(function, signature, name)
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name in bound:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            hint = "; is functools.wraps missing in a decorator?" if len(signature.parameters) == 2 else ""
            raise ToolDefinitionError(
                f"tool {name!r} takes {stars}{parameter.name}, which a model cannot be told how to fill: "
                f"give it named parameters{hint}",
                tool=name,
            )
        if parameter.annotation is not parameter.empty:
            parameter = parameter.replace(annotation=_resolve(parameter, inner, name))
        parameters.append(parameter)
    return parameters


def documentation(function: Callable[..., Any]) -> Documentation:
    """The docstring of ``function`` in Google, NumPy, Sphinx or Epydoc style, parsed."""
    text = _docstring(function)
    if not text:
        return Documentation("", {}, {})
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(text)
    except ParseError:
        return Documentation(text, {}, {})
    parts = [parsed.short_description, parsed.long_description]
    if parsed.returns is not None and parsed.returns.description:
        parts.append(f"Returns: {_one_line(parsed.returns.description)}")
    return Documentation(
        "\n\n".join(part.strip() for part in parts if part),
        {p.arg_name.lstrip("*"): _one_line(p.description) for p in parsed.params if p.description},
        {p.arg_name.lstrip("*"): p.type_name for p in parsed.params if p.type_name},
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _docstring(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isroutine(function) or isinstance(function, type)):
        call = getattr(type(function), "__call__", None)  # noqa: B004
        function = call if getattr(call, "__doc__", None) else type(function)
    return inspect.getdoc(function) or ""


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            # an annotation that cannot be evaluated must not hide the signature
            return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(function)
    except (TypeError, ValueError):
        reason = "has no signature that Python can tell" if callable(function) else "is not callable"
        raise ToolDefinitionError(f"tool {name!r} {reason}: wrap it in a function of your own", tool=name) from None


def _refuse_unbound(function: Any, signature: inspect.Signature, name: str) -> None:
    """A method taken from its class still wants the object, which no model can give."""
    first = next(iter(signature.parameters), None)
    if first not in ("self", "cls") or not isinstance(function, types.FunctionType):
        return
    owner, _, method = function.__qualname__.rpartition(".")
    if owner and not owner.endswith("<locals>"):
        owner = owner.rpartition(".")[2]
        raise ToolDefinitionError(
            f"tool {name!r} is a method of {owner} without an object, which its {first!r} would be: make one and pass "
            f"its method, {owner}(...).{method}",
            tool=name,
        )


def _innermost(function: Any) -> tuple[Any, set[str]]:
    """The function whose namespace the annotations belong to, and the keywords partials have bound on the way."""
    bound: set[str] = set()
    for _ in range(100):  # a __wrapped__ chain could be a circle
        if isinstance(function, functools.partial):
            bound |= function.keywords.keys()
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, type):
            constructor = inspect.getattr_static(function, "__init__")
            if not isinstance(constructor, types.FunctionType):
                break
            function = constructor
        elif not inspect.isroutine(function) and isinstance(call := _call_method(function), types.FunctionType):
            function = call
        else:
            break
    return function, bound


def _call_method(value: Any) -> Any:
    return getattr(type(value), "__call__", None)  # noqa: B004


def _resolve(parameter: inspect.Parameter, function: Any, name: str) -> Any:
    error: Exception | None = None
    for namespaces in _namespaces(function):
        try:
            return _evaluate(parameter.annotation, *namespaces)
        except NameError as caught:
            error = error or caught
        except Exception as caught:
            error = caught
            break
    raise ToolDefinitionError(
        f"tool {name!r}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} "
        f"cannot be resolved: {error}",
        tool=name,
    ) from None


def _evaluate(annotation: Any, globalns: dict[str, Any], localns: dict[str, Any]) -> Any:
    def holder() -> None: ...

    # get_type_hints also resolves names inside, such as list["City"]
    holder.__annotations__ = {"value": annotation}
    return typing.get_type_hints(holder, globalns, localns, include_extras=True)["value"]


def _namespaces(function: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Where annotations may find their names: the function's own scope, then the callers' local variables."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    globalns = getattr(function, "__globals__", None) or (vars(module) if module else {})
    localns: dict[str, Any] = {p.__name__: p for p in getattr(function, "__type_params__", ())}
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    for variable, cell in zip(getattr(code, "co_freevars", ()), closure, strict=False):
        try:
            localns[variable] = cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    yield globalns, localns
    # A type that is local to the function which defines the tool is in nobody's closure
    # when annotations are strings; it is among the local variables of a caller of ours then.
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("mmsp_nb.") and frame.f_locals is not frame.f_globals:
            yield globalns, {**frame.f_locals, **localns}
        frame = frame.f_back
