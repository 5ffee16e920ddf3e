"""The arguments of a model's call -> the arguments of a function: validated, coerced, or refused with a reason."""

from __future__ import annotations

import copy
import json
from typing import Any

import pydantic

from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools.definition import Parameter, Tool
from mmsp_nb.tools.views import cut, error_text

__all__ = ["InvalidArguments", "bind"]


class InvalidArguments(ValueError):
    """Arguments that do not fit the function; the message tells the model why."""


def bind(tool: Tool, arguments: Any) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments for the tool's function, validated and coerced.

    Raises InvalidArguments, and nothing else.
    """
    if not isinstance(arguments, dict):
        raise InvalidArguments("they must be an object")
    if tool.validate is not None:
        try:
            return [], tool.validate(arguments)
        except ValueError as error:
            raise InvalidArguments(cut(str(error), 1_000)) from error
    inputs = {each.name: each for each in tool.inputs}
    unknown = [name for name in arguments if name not in inputs]
    faults = [f"there is no argument {name[:80]!r}{did_you_mean(name, list(inputs))}" for name in unknown]
    cause: Exception | None = None
    values: dict[str, Any] = {}
    for name, parameter in inputs.items():
        if name in arguments:
            try:
                values[name] = _validate(parameter, arguments[name])
            except _Default:
                continue
            except pydantic.ValidationError as error:
                cause = cause or error
                faults.append(_fault(name, error))
            except Exception as error:  # a validator of the user's own
                cause = cause or error
                faults.append(f"{name}: {error_text(error)}")
        elif parameter.required:
            faults.append(f"{name} is missing")
    if faults:
        raise InvalidArguments("; ".join(faults)) from cause
    try:
        return _distribute(tool, values)
    except Exception as error:  # a default factory of the user's own
        raise InvalidArguments(error_text(error)) from error


def _distribute(tool: Tool, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments. A default of the function itself is left to the function."""
    for parameter in tool.inputs:
        if parameter.name not in values and parameter.default_factory is not None:
            values[parameter.name] = parameter.default_factory()
        elif parameter.name not in values and parameter.declared_default:
            values[parameter.name] = copy.deepcopy(parameter.default)
    positional = [each for each in tool.inputs if each.positional_only]
    while positional and positional[-1].name not in values:
        positional.pop()
    args = [values.pop(each.name, each.default) for each in positional]
    return args, values


class _Default(Exception):
    """null for a parameter that has a default and takes no null: as if it were left out."""


def _validate(parameter: Parameter, value: Any) -> Any:
    """``value`` as the parameter's type. What models commonly get wrong in form but not in meaning is accepted."""
    try:
        return _parse(parameter, value)
    except pydantic.ValidationError:
        if value is None and not parameter.required:
            raise _Default from None
        for other in _alternatives(value):
            try:
                return _parse(parameter, other)
            except pydantic.ValidationError:
                continue
        raise


def _parse(parameter: Parameter, value: Any) -> Any:
    try:
        # arguments are JSON: JSON's rules for dates, sets, bytes and strict types apply
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return parameter.adapter.validate_python(value)
    try:
        return parameter.adapter.validate_json(text)
    except pydantic.ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            raise
        return parameter.adapter.validate_python(value)  # half a surrogate pair, which JSON text cannot hold


def _alternatives(value: Any) -> list[Any]:
    """Other readings of ``value``: an object or array that was written as a string, a string that was a number."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return [json.loads(value)]
        except ValueError:
            return []
    return [str(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def _fault(name: str, error: pydantic.ValidationError) -> str:
    faults = []
    for each in error.errors(include_url=False, include_context=False)[:5]:
        place = ".".join([name, *(str(part) for part in each["loc"])])
        got = cut(json.dumps(each["input"], default=str, ensure_ascii=False), 80) if each["type"] != "missing" else ""
        faults.append(f"{place}: {each['msg']}" + (f" (got {got})" if got else ""))
    return "; ".join(dict.fromkeys(faults))
