"""`Tool`: a function together with what a model is told about it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined, to_jsonable_python

from mmsp_nb.protocol.items import ToolSchema
from mmsp_nb.tools.hints import (
    Documentation,
    ToolDefinitionError,
    documentation,
    python_name,
    resolved_parameters,
    runs_on_loop,
)
from mmsp_nb.tools.schema import NAME, legal_name, short_type, tidy
from mmsp_nb.tools.typeddicts import modern

__all__ = ["Options", "Parameter", "Tool"]

DESCRIPTION_LIMIT = 1024
"""Characters of a description made from a docstring; longer ones are refused by some providers."""

OPTIONS = "__mmsp_tool__"
"""The attribute of a function that holds what `tool` was told about it."""

NOTHING = inspect.Parameter.empty

_DOC_TYPES = {
    "str": str, "string": str, "int": int, "integer": int, "float": float, "number": int | float,
    "bool": bool, "boolean": bool, "list": list, "dict": dict, "tuple": list, "set": list,
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """What `tool` was told about a function."""

    name: str | None = None
    description: str | None = None
    timeout: float | None = None
    thread: bool | None = None
    ask: bool | Literal["always"] | None = None
    capture: bool | None = None
    model_view: Callable[[Any], Any] | None = None

    def over(self, other: Options) -> Options:
        """These options, and where one is not given that of ``other``."""
        names = [field.name for field in fields(self)]
        return Options(**{n: getattr(other if getattr(self, n) is None else self, n) for n in names})


@dataclass(frozen=True)
class Parameter:
    """One parameter that the model can fill: ``adapter`` validates its value.

    ``declared_default``: the default stands in a ``Field(...)``, so that the function itself does not apply it.
    """

    name: str
    annotation: Any
    adapter: pydantic.TypeAdapter[Any]
    required: bool
    positional_only: bool = False
    default: Any = NOTHING
    default_factory: Callable[[], Any] | None = None
    declared_default: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Tool:
    """A function as a tool. Make one with `Tool.of`; it can be called like the function itself.

    ``name`` and ``description`` are what the model sees, ``parameters`` is the JSON Schema of its arguments.
    ``timeout`` is in seconds; ``thread`` says that a synchronous function runs in a thread of its own, and
    ``is_async`` that it is a coroutine function or an async generator. ``ask``: a call needs a person's word,
    "always" even if a policy allows it. ``capture``: what it prints is given to the model beside its result
    (an asynchronous tool's only in a notebook).
    ``model_view`` makes of the result what the model is to see of it. ``source`` says where a tool is from that is
    not of this process; its arguments are then checked by ``validate``, which returns the keywords for the function
    or raises ValueError. ``internal``: our own way to take an answer; no policy applies, since nothing is done.
    """

    function: Callable[..., Any]
    name: str
    description: str
    parameters: dict[str, Any]
    is_async: bool = False
    thread: bool = False
    timeout: float | None = None
    inputs: tuple[Parameter, ...] = ()
    ask: bool | Literal["always"] = False
    capture: bool = False
    model_view: Callable[[Any], Any] | None = None
    source: str | None = None
    validate: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    internal: bool = False

    @classmethod
    def of(
        cls,
        function: Callable[..., Any] | Tool,
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        thread: bool | None = None,
        ask: bool | Literal["always"] | None = None,
        capture: bool | None = None,
        model_view: Callable[[Any], Any] | None = None,
    ) -> Tool:
        """The tool for ``function``: a function, coroutine function, bound method, partial, callable object, or Tool.

        What is not given comes from the function: from what the `tool` decorator was told, its name, its
        docstring, its annotations. A synchronous function with a ``timeout`` runs in a thread, because
        nothing can stop it elsewhere. Parameters that start with an underscore, or are without annotation and
        default to something that is no JSON value, keep their default; the model is not told of them.

        Raises ToolDefinitionError when ``function`` cannot be a tool.
        """
        given = Options(name, description, timeout, thread, ask, capture, model_view)
        if not isinstance(function, Tool):
            return _make(function, given.over(getattr(function, OPTIONS, None) or Options()))
        if given == Options():
            return function
        options = given.over(Options(**{field.name: getattr(function, field.name) for field in fields(Options)}))
        if function.validate is None:
            return _make(function.function, options)
        return replace(function, **{field.name: getattr(options, field.name) for field in fields(Options)})

    def schema(self) -> ToolSchema:
        """Name, description and parameters, as a config's ``tools`` take them."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}

    @property
    def on_loop(self) -> bool:
        """Whether it runs on the event loop or in a thread, and not on the caller's thread."""
        return self.is_async or self.thread

    @property
    def usage(self) -> str:
        """The interface in one line: ``name(a: integer, b?: string)``."""
        required = self.parameters.get("required", [])
        properties = self.parameters.get("properties", {})
        shown = (f"{name}{'' if name in required else '?'}: {short_type(each)}" for name, each in properties.items())
        return f"{self.name}({', '.join(shown)})"

    def __repr__(self) -> str:
        return f"<Tool {self.usage}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _make(function: Callable[..., Any], options: Options) -> Tool:
    if not callable(function):
        raise ToolDefinitionError(f"a tool is a function, not {type(function).__name__}", tool=None)
    name = _name(function, options.name)
    if options.timeout is not None and not (
        isinstance(options.timeout, int | float) and options.timeout > 0 and math.isfinite(options.timeout)
    ):
        raise ToolDefinitionError(f"tool {name!r}: timeout is a number of seconds above 0", tool=name)
    if options.ask not in (None, False, True, "always"):
        raise ToolDefinitionError(f"tool {name!r}: ask is True, False or 'always', not {options.ask!r}", tool=name)
    if options.model_view is not None and not callable(options.model_view):
        raise ToolDefinitionError(f"tool {name!r}: model_view is a function of the result", tool=name)
    docs = documentation(function)
    is_async = runs_on_loop(function)
    inputs, schema = _inputs(function, name, docs)
    return Tool(
        function=function,
        name=name,
        description=options.description or _description(docs, name),
        parameters=schema,
        is_async=is_async,
        thread=not is_async and bool(options.thread or options.timeout is not None),
        timeout=options.timeout,
        inputs=inputs,
        ask=options.ask or False,
        capture=bool(options.capture),
        model_view=options.model_view,
    )


def _name(function: Callable[..., Any], given: str | None) -> str:
    if given is not None:
        if not isinstance(given, str) or not NAME.fullmatch(given):
            legal = f", for instance {legal_name(given)!r}" if isinstance(given, str) and given else ""
            raise ToolDefinitionError(
                f"tool name {given!r} is not allowed: 1 to 64 of a-z, A-Z, 0-9, _ and -{legal}", tool=given
            )
        return given
    name = python_name(function)
    if name == "<lambda>":
        raise ToolDefinitionError("a lambda has no name: use def, or tool(name=...)", tool=name)
    return legal_name(name)


def _description(docs: Documentation, name: str) -> str:
    text = docs.description or f"{name.replace('_', ' ').strip().capitalize()}."
    return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - 3].rstrip() + "..."


def _inputs(
    function: Callable[..., Any], name: str, docs: Documentation
) -> tuple[tuple[Parameter, ...], dict[str, Any]]:
    inputs: list[Parameter] = []
    notes: dict[str, str] = {}
    for parameter in resolved_parameters(function, name):
        annotation, default, factory = _annotation_and_default(parameter, docs.types.get(parameter.name))
        if annotation is NOTHING:
            continue
        inputs.append(
            Parameter(
                name=parameter.name,
                annotation=annotation,
                adapter=_adapter(annotation, parameter.name, name),
                required=default is NOTHING and factory is None,
                positional_only=parameter.kind is parameter.POSITIONAL_ONLY,
                default=default,
                default_factory=factory,
                declared_default=default is not NOTHING and default is not parameter.default,
            )
        )
        notes[parameter.name] = _note(annotation) or docs.parameters.get(parameter.name, "")
    return tuple(inputs), _object_schema(inputs, notes, name)


def _annotation_and_default(parameter: inspect.Parameter, documented: str | None) -> tuple[Any, Any, Any]:
    """Type, default and default factory; NOTHING as the type when the model is not to be told of the parameter."""
    annotation, default = parameter.annotation, parameter.default
    factory = None
    info = default if isinstance(default, FieldInfo) else None
    if info is not None:  # x: int = Field(3, description="...")
        annotation = Annotated[Any if annotation is NOTHING else annotation, info]
        default = NOTHING
    for extra in reversed(_extras(annotation)):
        if isinstance(extra, FieldInfo) and default is NOTHING and factory is None:
            default = NOTHING if extra.default is PydanticUndefined or extra.default is ... else extra.default
            factory = extra.default_factory
    has_default = default is not NOTHING or factory is not None
    hidden = has_default and parameter.name.startswith("_")
    if annotation is NOTHING:
        annotation = _guess(default, documented)
        hidden = hidden or annotation is NOTHING
    if parameter.kind is parameter.POSITIONAL_ONLY and annotation is NOTHING:
        annotation = Any  # it cannot be left out of the call when a later one is given
    elif hidden and parameter.kind is not parameter.POSITIONAL_ONLY:
        annotation = NOTHING
    return annotation, default, factory


def _guess(default: Any, documented: str | None) -> Any:
    """A type for a parameter without annotation: from its default, else from its docstring, else anything."""
    if default is not NOTHING and default is not None:
        kind = type(default)
        if kind in (int, float):
            return int | float
        if kind in (str, bool, list, dict):
            return kind
        return list if kind in (tuple, set, frozenset) else NOTHING
    word = (documented or "").removesuffix(", optional").strip().lower()
    return _DOC_TYPES.get(word, Any)


def _extras(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _note(annotation: Any) -> str:
    """The description in ``Annotated[int, "description"]``, ``Annotated[int, Doc("...")]`` or ``Field(...)``."""
    found = ""
    for extra in _extras(annotation):
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        text = text or getattr(extra, "documentation", None)
        if isinstance(text, str):
            found = text
    return found


def _adapter(annotation: Any, parameter: str, tool: str) -> pydantic.TypeAdapter[Any]:
    try:
        return pydantic.TypeAdapter(modern(annotation))
    except Exception as error:  # pydantic raises several kinds, and so may a type's own hooks
        raise _undescribable(annotation, parameter, tool) from error


def _undescribable(annotation: Any, parameter: str, tool: str) -> ToolDefinitionError:
    kind = getattr(annotation, "__name__", None) or str(annotation)
    return ToolDefinitionError(
        f"tool {tool!r}: parameter {parameter!r} is of type {kind}, which a model cannot write: use JSON-like types, "
        "or bind it with functools.partial",
        tool=tool,
    )


class _Quiet(GenerateJsonSchema):
    # defaults that are no JSON are left out without a warning
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


def _object_schema(inputs: list[Parameter], notes: dict[str, str], tool: str) -> dict[str, Any]:
    try:
        schemas, definitions = pydantic.TypeAdapter.json_schemas(
            [(each.name, "validation", each.adapter) for each in inputs], schema_generator=_Quiet
        )
    except Exception as error:
        for each in inputs:
            try:
                each.adapter.json_schema(schema_generator=_Quiet)
            except Exception:
                raise _undescribable(each.annotation, each.name, tool) from error
        raise ToolDefinitionError(f"tool {tool!r} cannot be described: {type(error).__name__}", tool=tool) from error
    properties = {each.name: _property(schemas[each.name, "validation"], each, notes[each.name]) for each in inputs}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [each.name for each in inputs if each.required]
    if required:
        schema["required"] = required
    return tidy({**schema, **({"$defs": definitions["$defs"]} if "$defs" in definitions else {})})


def _property(schema: dict[str, Any], parameter: Parameter, note: str) -> dict[str, Any]:
    schema = dict(schema)
    choices = schema.get("anyOf", [])
    if {"type": "null"} in choices and parameter.default is None:
        # leaving it out says the same as null, and not every provider takes a null type
        choices = [choice for choice in choices if choice != {"type": "null"}]
        schema.pop("default", None)
        schema.pop("anyOf")
        schema = {**schema, **choices[0]} if len(choices) == 1 else {**schema, "anyOf": choices}
    if choices == [{"type": "integer"}, {"type": "number"}]:
        schema.pop("anyOf")
        schema["type"] = "number"
    if note:
        schema["description"] = note
    if parameter.default is not NOTHING and parameter.default is not None and "default" not in schema:
        try:
            schema["default"] = to_jsonable_python(parameter.default)
        except Exception:  # a default that is no JSON is the function's own business
            pass
    return schema
