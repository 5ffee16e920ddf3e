"""``{{expression}}`` in a prompt: evaluated once in the user's namespace, inserted, never looked at again.

One rule. ``{{`` begins an expression, the first ``}}`` at which it is complete ends it (so dicts, sets and strings with
braces are fine), ``\\{{`` is a literal ``{{``. Everything else goes to the model byte for byte. All expressions are
evaluated before anything is sent; one that fails names itself and its line.

Strings are inserted as they are, exceptions as their traceback, functions as their source, tables and arrays as a
labelled, bounded excerpt, pictures and figures as pictures, everything else as bounded text.
"""

from __future__ import annotations

import ast
import inspect
import traceback
import types
from collections.abc import Mapping
from typing import Any

from mmsp_nb.protocol.suggestions import did_you_mean

from .options import OptionError

__all__ = ["Expression", "Template", "expand", "expressions"]

CANDIDATES = 200
"""So many ``}}`` are tried as the end of one expression."""

MAX_TEXT = 20_000

LITERALLY = "write \\{{ for the characters themselves"


class Expression:
    """One ``{{...}}``: its ``source``, where it stands (``start``, ``end``), its 1-based ``line``."""

    def __init__(self, source: str, start: int, end: int, line: int) -> None:
        self.source, self.start, self.end, self.line = source, start, end, line


def expressions(text: str, first_line: int = 1) -> list[Expression]:
    """The expressions in ``text``. Raises OptionError for one that is never closed or is no Python expression."""
    found: list[Expression] = []
    position = 0
    while (start := text.find("{{", position)) >= 0:
        if start and text[start - 1] == "\\":
            position = start + 2
            continue
        line = first_line + text.count("\n", 0, start)
        expression = _complete(text, start, line)
        found.append(expression)
        position = expression.end
    return found


def _complete(text: str, start: int, line: int) -> Expression:
    end, error = start + 2, ""
    for _ in range(CANDIDATES):
        end = text.find("}}", end)
        if end < 0:
            break
        source = text[start + 2 : end]
        if not source.strip():
            raise OptionError(f"line {line}: {{{{}}}} holds no expression; write \\{{{{ for the characters themselves")
        try:
            ast.parse(f"({source}\n)", mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as caught:
            error = error or f"line {line}: {{{{{_brief(source)}}}}} is no Python expression ({_reason(caught)})"
            end += 1
            continue
        return Expression(source.strip(), start, end + 2, line)
    raise OptionError(
        error
        or f"line {line}: {{{{{_brief(text[start + 2 :])} is never closed; write \\{{{{ for the characters themselves"
    )


class Template:
    """A prompt that is read once and filled any number of times, each time with other variables.

    ``unknown`` is what helps where an expression uses a name that is not there, and no other is like it.

    Attributes:
        names: The names that its expressions use.

    Raises:
        OptionError: an expression is never closed, or is no Python expression.
    """

    def __init__(self, text: str, first_line: int = 1, *, unknown: str = LITERALLY) -> None:
        self._unknown = unknown
        self._expressions = expressions(text, first_line)
        self._codes = [_compiled(expression) for expression in self._expressions]
        self._literals: list[str] = []
        position = 0
        for expression in self._expressions:
            self._literals.append(_literal(text[position : expression.start]))
            position = expression.end
        self._last = _literal(text[position:])
        self.names = {name for code in self._codes if code is not None for name in code.co_names}

    def fill(self, namespace: Mapping[str, Any]) -> str | list[Any]:
        """The prompt with the values of its expressions; a list of texts and pictures when there are pictures.

        Raises OptionError for an expression that fails. All are evaluated before anything is inserted.
        """
        pairs = zip(self._expressions, self._codes, strict=True)
        values = [_evaluate(expression, code, namespace, self._unknown) for expression, code in pairs]
        parts: list[Any] = []
        for literal, value in zip(self._literals, values, strict=True):
            parts.append(literal)
            parts += _inserted(value)
        parts.append(self._last)
        return "".join(parts) if all(isinstance(part, str) for part in parts) else _joined(parts)


def expand(text: str, namespace: Mapping[str, Any], first_line: int = 1) -> str | list[Any]:
    """``text`` with its expressions replaced by their values; a list of texts and pictures when there are pictures.

    Args:
        text: The prompt as it was typed.
        namespace: The user's variables.
        first_line: The number of its first line in the cell, for messages.

    Raises:
        OptionError: an expression is malformed or fails. Nothing has been inserted then.
    """
    return Template(text, first_line).fill(namespace)


def _literal(text: str) -> str:
    return text.replace("\\{{", "{{")


def _joined(parts: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return joined


def _compiled(expression: Expression) -> types.CodeType | None:
    """The expression's code; None for what parses and does not compile, which says so when it is evaluated."""
    try:
        return compile(f"({expression.source}\n)", "<{{expression}}>", "eval")
    except (SyntaxError, ValueError):
        return None


def _evaluate(expression: Expression, code: types.CodeType | None, namespace: Mapping[str, Any], unknown: str) -> Any:
    try:
        code = code or compile(f"({expression.source}\n)", "<{{expression}}>", "eval")
        # the user's own namespace, so that comprehensions and lambdas see it
        return eval(code, namespace if isinstance(namespace, dict) else dict(namespace))
    except OptionError as error:  # of our own function `cell`
        raise OptionError(f"line {expression.line}: {{{{{_brief(expression.source)}}}}}: {error}") from None
    except Exception as error:
        message = " ".join(str(error).split())
        hint = ""
        if isinstance(error, NameError):
            name = getattr(error, "name", None) or ""
            known = [each for each in namespace if not each.startswith("_")]
            hint = did_you_mean(name, known) or f"; {unknown}"
        raise OptionError(
            f"line {expression.line}: {{{{{_brief(expression.source)}}}}}: {type(error).__name__}: {message}{hint}"
        ) from None


def _inserted(value: Any) -> list[Any]:
    """The texts and pictures that stand for ``value``."""
    if isinstance(value, str):
        return [str(value)]
    if value is None or isinstance(value, bool):
        return [str(value)]  # Python's words for them, not JSON's
    if isinstance(value, BaseException):
        return [_cut("".join(traceback.format_exception(value)).rstrip("\n"))]
    if inspect.isroutine(value) or inspect.isclass(value):
        try:
            return [_cut(inspect.getsource(value).rstrip("\n"))]
        except (OSError, TypeError):
            return [repr(value)]

    from mmsp_nb import media
    from mmsp_nb.answer import Answer
    from mmsp_nb.tools import view

    if isinstance(value, Answer):
        return [str(value)]
    try:
        drawn = media.draw(value)
    except Exception:  # what cannot be drawn is described
        drawn = None
    if drawn is not None:
        return [_image(drawn.url)]
    seen = view(value)
    return [seen.text, *map(_image, seen.images)]


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url.done", "image_url": url}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n[... {len(text) - MAX_TEXT:,} more characters]"


def _brief(source: str) -> str:
    line = " ".join(source.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _reason(error: BaseException) -> str:
    return getattr(error, "msg", None) or type(error).__name__
