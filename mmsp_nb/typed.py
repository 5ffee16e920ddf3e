"""`TypedAnswer`: an answer that is an object of a type, asked for, followed while it streams, and validated."""

from __future__ import annotations

import builtins
import copy
import json
import re
import types
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import pydantic
from pydantic_core import from_json

from mmsp_nb.protocol.configs import with_note
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.tools import Tool, ToolRegistry
from mmsp_nb.tools.portable import portable, without_nulls
from mmsp_nb.tools.schema import inline_refs, tidy
from mmsp_nb.tools.typeddicts import modern

__all__ = ["TypedAnswer", "TypedAnswerError"]

RETRIES = 2
"""So often is a model asked again whose answer does not fit."""

MAX_FAULTS = 8
MAX_PARTIAL = 200_000
"""Characters of an answer whose fields are still followed as they stream."""

_NAME = "give_answer"
_VALUE = "value"
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(?P<json>.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)


class TypedAnswerError(MMSPError):
    """An answer that is not of the type it was asked for: cut off, or wrong after all corrections.

    Attributes:
        type: The type.
        complete: What is complete and valid: a dict of fields, or a list of items.
        missing: Names of the fields that are not.
        faults: What is wrong, one line each.
    """

    fields = {"type": None, "complete": None, "missing": (), "faults": ()}


class TypedAnswer:
    """What an answer has to be: an object of ``type``. One for each question.

    Any type that pydantic can validate: models, dataclasses, TypedDicts, enums, Literals, lists and unions of them.

    Attributes:
        type: The type.
        value: The validated object; None until the answer is there.
        reached: Whether it is there.
        partial: What has come so far as plain data, incomplete values included; None before anything has.

    Raises:
        TypeError: ``type`` cannot be described to a model.
    """

    def __init__(self, type: Any, *, retries: int = RETRIES) -> None:
        if isinstance(type, types.FunctionType | types.BuiltinFunctionType | types.MethodType):
            raise TypeError(f"{type.__name__} cannot be the type of an answer: it is a function")
        self.type = type
        self.name = getattr(type, "__name__", None) or str(type)
        try:
            self._adapter = pydantic.TypeAdapter(modern(type))
            schema = tidy(self._adapter.json_schema())
        except Exception as error:  # pydantic raises several kinds, and so may a type's own hooks
            reason = str(error).partition("\n")[0]
            if isinstance(error, pydantic.errors.PydanticSchemaGenerationError):
                is_type = isinstance(type, builtins.type)
                reason = "pydantic has no schema for it" if is_type else "it is a value, and no type"
            raise TypeError(f"{self.name[:100]} cannot be the type of an answer: {reason}") from None
        self._wrapped = schema.get("type") != "object" or "properties" not in schema
        if self._wrapped:
            definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
            schema = {"type": "object", "properties": {_VALUE: schema}, "required": [_VALUE], **definitions}
        self._schema = schema
        self._retries = self._left = retries
        self._tool: Tool | None = None
        self._text = ""
        self._looked = 0
        self._listening = False
        self.value: Any = None
        self.reached = False
        self.partial: Any = None
        self.faults: list[str] = []

    def again(self) -> TypedAnswer:
        """The same wish for another try, or for another question; what was made of the type is shared."""
        other = copy.copy(self)
        other._left, other._tool, other._text, other._looked, other._listening = self._retries, None, "", 0, False
        other.value, other.reached, other.partial, other.faults = None, False, None, []
        return other

    @property
    def schema(self) -> dict[str, Any]:
        """What a model is told of the type, as JSON Schema."""
        return self._schema

    @property
    def data(self) -> dict[str, Any]:
        """The answer that was reached, as JSON that `restore` takes."""
        return {_VALUE: self.partial}

    def restore(self, data: Mapping[str, Any]) -> Any:
        """Take `data` of an earlier answer to the same wish as this one.

        Raises:
            ValueError: it is no longer of the type.
        """
        kept = data[_VALUE]
        self._checked({_VALUE: kept} if self._wrapped else kept)
        return self.value

    # asking

    def plan(self, client: Any, config: Mapping[str, Any], tools: ToolRegistry) -> tuple[dict[str, Any], ToolRegistry]:
        """Config and tools that make ``client`` answer in this form: by the wire's own mode, else by a tool."""
        vendor, model = getattr(client, "vendor", None), str(getattr(client, "model", ""))
        strict = portable(self._schema)
        if vendor is not None and strict is not None:
            from mmsp_nb.providers import answering

            wish = {"name": _title(self.name), "schema": strict, "strict": True}
            response_format = {"type": "json_schema", "json_schema": wish}
            if answering.takes_schema(vendor, model, response_format):
                return {**config, "response_format": response_format}, tools
        name = next(n for n in (_NAME, *(f"{_NAME}_{i}" for i in range(2, 999))) if n not in tools)
        self._tool = Tool(
            function=self._accept,
            name=name,
            description=f"Gives the final answer, a {self.name}. Call it once, when everything is known.",
            parameters=self._schema,
            validate=self._checked,
            internal=True,
        )
        both = ToolRegistry(*tools, self._tool, lookup=tools.lookup)
        choice: Any = "auto"
        if vendor is not None:
            from mmsp_nb.providers import answering

            choice = answering.forcing(vendor, model, both.schemas(), name)
        system = config.get("system_prompt")
        note = f"Give the final answer by calling {name}; text is not read."
        return {**config, "tool_choice": choice, "system_prompt": with_note(system, note)}, both

    # while it streams

    def feed(self, event: Mapping[str, Any]) -> Any:
        """Take in an event of the client. Returns `partial` when it has grown, else None."""
        grown = over = False
        for item in event["content_items"]:
            kind, _, phase = item["type"].partition(".")
            if kind == "tool_call" and self._tool is not None:
                if phase == "delta":
                    if item["name"]:
                        self._listening = item["name"] == self._tool.name
                        self._restart(self._listening)
                    piece = item["arguments"] if self._listening else ""
                    self._text += piece
                    grown = grown or bool(piece)
                over = over or phase == "done"
            elif kind == "text" and phase == "delta":
                if self._listening:
                    self._listening = False
                    self._restart(True)
                self._text += item["text"]
                grown = True
            elif kind == "text":
                over = True
        if over and len(self._text) <= MAX_PARTIAL:
            return self._look()
        if not grown or len(self._text) > MAX_PARTIAL or len(self._text) - self._looked < len(self._text) // 20:
            return None
        self._looked = len(self._text)
        return self._look()

    def _restart(self, really: bool) -> None:
        if really:
            self._text, self._looked = "", 0

    def _look(self) -> Any:
        try:
            data = from_json(_json(self._text), allow_partial="trailing-strings")
        except ValueError:
            return None
        data = self._unwrapped(data)
        if data is None or data == self.partial:
            return None
        self.partial = data
        return data

    # when it is there

    def correction(self, text: str, finish_reason: str | None) -> str | None:
        """Take ``text`` as the answer. What to tell the model if it does not fit; None if it does or no try is left.

        An answer that was cut off is not asked for again: it would be cut off again.
        """
        self._text = text or self._text
        try:
            data = from_json(_json(text))
        except ValueError as error:
            self.faults = [f"it is no JSON: {error}"]
        else:
            try:
                self._checked(data)
                return None
            except ValueError:
                pass
        self._look()
        if finish_reason == "length" or self._left <= 0:
            return None
        self._left -= 1
        self._restart(True)
        how = "as JSON and nothing else" if self._tool is None else f"by calling {self._tool.name}"
        return f"That does not fit: {'; '.join(self.faults)}. Give the whole answer again, {how}."

    def _checked(self, data: Any) -> dict[str, Any]:
        """Validate: sets ``value``, or raises ValueError with what is wrong."""
        try:
            # what a model writes is JSON: JSON's rules for dates, sets, bytes and strict types apply
            found = self._adapter.validate_json(json.dumps(self._unwrapped(without_nulls(data, self._schema))))
        except pydantic.ValidationError as error:
            self.faults = _faults(error)
            raise ValueError("; ".join(self.faults)) from error
        self.value, self.reached, self.faults = found, True, []
        self.partial = self._unwrapped(data)
        return {}

    def _accept(self) -> str:
        return "(accepted)"

    def _unwrapped(self, data: Any) -> Any:
        return data.get(_VALUE) if self._wrapped and isinstance(data, dict) and set(data) <= {_VALUE} else data

    # when it is not

    @property
    def complete(self) -> Any:
        """What of an answer that was cut off is complete and valid: a dict of fields, or a list of items."""
        if self.reached:
            return self.partial
        data = _closed(_json(self._text), 2 if self._wrapped else 1)
        if data is None:
            return None
        data = self._unwrapped(data)
        if isinstance(data, list):
            return _valid_items(data, inline_refs(self._schema), self._item_adapter())
        if not isinstance(data, dict):
            return None
        adapters = self._field_adapters()
        return {name: value for name, value in data.items() if name in adapters and _is_valid(adapters[name], value)}

    @property
    def missing(self) -> list[str]:
        """The names of the fields that are not complete and valid; empty for what has no fields."""
        if self.reached or self._wrapped:
            return []
        kept = self.complete or {}
        return [name for name in self._schema["properties"] if name not in kept]

    def error(self, finish_reason: str | None) -> TypedAnswerError:
        """What to raise when the answer is no ``type`` in the end."""
        cut = "was cut off at the limit of tokens" if finish_reason == "length" else "does not fit"
        complete, missing = self.complete, self.missing
        if isinstance(complete, dict):
            kept = f"; complete are {', '.join(complete) or 'no fields'}, missing {', '.join(missing)}"
        else:
            kept = f"; {len(complete)} items are complete" if complete else ""
        wrong = f": {self.faults[0]}" if self.faults and finish_reason != "length" else ""
        return TypedAnswerError(
            f"the answer is no {self.name}: it {cut}{wrong}{kept}",
            type=self.type,
            complete=complete,
            missing=tuple(missing),
            faults=tuple(self.faults),
        )

    def _field_adapters(self) -> dict[str, pydantic.TypeAdapter[Any]]:
        fields = getattr(self.type, "model_fields", None)
        if fields is not None:
            hints = {each.alias or name: each.annotation for name, each in fields.items()}
        else:
            try:
                hints = get_type_hints(self.type, include_extras=True)
            except Exception:
                hints = {}
        return {name: pydantic.TypeAdapter(modern(hint)) for name, hint in hints.items()}

    def _item_adapter(self) -> pydantic.TypeAdapter[Any] | None:
        inner = get_args(self.type)
        return pydantic.TypeAdapter(modern(inner[0])) if len(inner) == 1 else None

    def __repr__(self) -> str:
        state = "reached" if self.reached else "not there"
        return f"<TypedAnswer {self.name}, {state}>"


def _title(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_")[:64] or "answer"


def _json(text: str) -> str:
    """The JSON in ``text``: models like to put it into a code block, and a sentence before it."""
    text = text.strip()
    if text[:1] in ("{", "["):
        return text
    if fenced := _FENCE.search(text):
        return fenced["json"].strip()
    begin = min((at for at in (text.find("{"), text.find("[")) if at > 0), default=0)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    return text[begin : end if end > begin else None]


def _faults(error: pydantic.ValidationError) -> list[str]:
    found = []
    for each in error.errors(include_url=False, include_context=False)[:MAX_FAULTS]:
        place = ".".join(str(part) for part in each["loc"])
        found.append(f"{place}: {each['msg']}" if place else each["msg"])
    more = error.error_count() - len(found)
    return [*found, f"and {more} more"] if more > 0 else found


def _closed(text: str, depth: int) -> Any:
    """The part of unfinished JSON whose values at ``depth`` are certainly complete; None when there is none."""
    try:
        return from_json(text)
    except ValueError:
        pass
    level, end, quoted, escaped = 0, None, False, False
    for position, c in enumerate(text):
        if quoted:
            escaped, quoted = (c == "\\" and not escaped), not (c == '"' and not escaped)
        elif c == '"':
            quoted = True
        elif c in "{[":
            level += 1
        elif c in "}]":
            level -= 1
            if level <= depth:
                end = position + (level == depth)
        elif c == "," and level == depth:
            end = position
    if end is None:
        return None
    try:
        return from_json(text[:end], allow_partial=True)
    except ValueError:
        return None


def _is_valid(adapter: pydantic.TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_json(json.dumps(value))
    except pydantic.ValidationError:
        return False
    return True


def _valid_items(items: list[Any], schema: Any, adapter: pydantic.TypeAdapter[Any] | None) -> list[Any]:
    """The items up to the first that is not valid."""
    if adapter is None:
        return items
    kept: list[Any] = []
    for each in items:
        if not _is_valid(adapter, each):
            break
        kept.append(each)
    return kept
