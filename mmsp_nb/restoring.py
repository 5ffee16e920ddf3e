"""Files back into conversations. The format is that of `files`; trace files are read as well."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from mmsp_nb import files, tracing
from mmsp_nb.approval import PendingCall
from mmsp_nb.choosing import make_client
from mmsp_nb.conversation import Conversation
from mmsp_nb.eventlog import EventLog
from mmsp_nb.filechecks import record_fault
from mmsp_nb.money import BESIDES, checked_budget
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.copying import copy_message, copy_messages
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.tools import Policy, ToolOutcome, ToolRegistry, registry
from mmsp_nb.turns import Turn

__all__ = ["AbsentClient", "ConversationFileError", "RestoredError", "restore", "turns_of"]


class ConversationFileError(MMSPError, ValueError):
    """A file is damaged, or holds no conversation. ``path``; ``line`` counts from 1, None for the file as a whole."""

    def __init__(self, message: str, *, path: Path, line: int | None = None) -> None:
        where = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{where}: {message}")
        self.path = path
        self.line = line


class RestoredError(MMSPError):
    """The error of a turn that was loaded. ``kind`` is the name of the class that it had."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class AbsentClient:
    """Stands for a model that cannot be asked here, and says why when it is asked."""

    def __init__(self, model: str, client_type: str | None, why: Exception) -> None:
        self.model = model
        self.client_type = client_type
        self.origin: str | None = None
        self._why = why
        self._history: list[UniMessage] = []

    def sibling(self) -> AbsentClient:
        return AbsentClient(self.model, self.client_type, self._why)

    def get_history(self) -> list[UniMessage]:
        return copy_messages(self._history)

    def set_history(self, history: Iterable[UniMessage]) -> None:
        self._history = copy_messages(history)

    def clear_history(self) -> None:
        self._history = []

    def mended_history(self) -> Any:
        """Nothing is mended for a model that cannot be asked."""
        from mmsp_nb.protocol.repairs import RepairReport

        return self.get_history(), RepairReport()

    async def streaming_response_stateful(self, message: Any, config: Any = None) -> AsyncIterator[Any]:
        raise self._why
        yield  # an async generator, as the agent expects


def restore(path: Path, *, tools: Any, client: Any, options: dict[str, Any]) -> Conversation:
    """See `files.load`."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # an editor may have put a mark first
    except FileNotFoundError as error:
        beside = [each.name for each in path.parent.glob("*.json*")] if path.parent.is_dir() else []
        why = f"there is no such file{did_you_mean(path.name, beside)}"
        raise FileNotFoundError(error.errno, why, str(path)) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConversationFileError("this is no UTF-8 text", path=path, line=line) from None
    if not text.strip():
        raise ConversationFileError("the file is empty", path=path)
    first = text.split("\n", 1)[0]
    if '"format":"mmsp_nb rows"' in first:
        raise ConversationFileError("this is a checkpoint of map(), which map(checkpoint=...) goes on with", path=path)
    if f'"{files.FORMAT}"' not in first:
        return _from_trace(path, text, tools, client, options)
    reader = _Reader(path)
    reader.read(text)
    head = reader.head
    options = {"client_type": head.get("client_type"), "base_url": head.get("base_url"), **options}
    try:
        conversation = _made(head, tools, client, {k: v for k, v in options.items() if v is not None})
    except ValueError as error:
        raise ConversationFileError(f"the conversation record is damaged: {error}", path=path, line=1) from None
    if reader.before:
        conversation._before = reader.before
    branches = reader.branches or {"main": list(reader.turns)}
    conversation._branches = {name: [reader.turns[key] for key in ids] for name, ids in branches.items()}
    conversation.branch = head.get("branch", next(iter(branches)))
    conversation.turns = conversation._branches[conversation.branch]
    for turn in reader.turns.values():
        reader.hold(turn, conversation.tools)
    conversation._load_history()
    return conversation


def _made(head: Mapping[str, Any], tools: Any, client: Any, options: dict[str, Any]) -> Conversation:
    absent: tuple[str, ...] = ()
    if tools is None:
        names = head.get("tools", ())
        tools = ToolRegistry(*(tool for tool in registry if tool.name in names))
        absent = tuple(name for name in names if tools.get(name) is None)
    model = head.get("model", "")
    if client is None:
        try:
            client = make_client(model, options)
        except MMSPError as error:
            client = AbsentClient(model, head.get("client_type"), error)
    else:
        client.set_history([])
    conversation = Conversation(
        client=client,
        tools=tools,
        config=head.get("config"),
        max_turns=head.get("max_turns", 10),
        max_calls=head.get("max_calls"),
        max_cost=checked_budget(head.get("max_cost"), "max_cost"),
        budget=head.get("budget"),
        name=head.get("name"),
    )
    conversation._transport, conversation._absent = options.get("transport"), absent
    if besides := checked_budget(head.get("spent_besides"), "spent_besides"):
        conversation._costs[BESIDES] = besides
    return conversation


class _Reader:
    """Takes the records of one file in, and says where one is wrong."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 0
        self._where: list[Item] | None = None
        self._same: list[Turn] = []
        self._statuses: dict[str, dict[str, str]] = {}
        self._waiting: dict[str, dict[str, str]] = {}
        self._lines: dict[str, int] = {}
        self._turn: Turn | None = None
        self._count: int | None = None
        self.head: dict[str, Any] = {}
        self.before: list[UniMessage] = []
        self.turns: dict[str, Turn] = {}
        self.branches: dict[str, list[str]] = {}

    def read(self, text: str) -> None:
        lines = text.split("\n")
        for self._line, line in enumerate(lines, 1):
            if line.strip():
                self._record(line)
        if self._count is None:
            self._line = len(lines) - (0 if lines[-1] else 1)
            raise self._fault("the file ends too early: its last record is missing")
        for turn in self._same:
            turn.history = copy_messages(turn.messages)
        for turn in self.turns.values():
            outcomes = outcomes_of(turn.messages, self._statuses.get(turn.id, {}))
            turn.outcomes = [outcome for outcome in outcomes if outcome.status != "held"]
            turn.held = [outcome.call for outcome in outcomes if outcome.status == "held"]
            places = [str(index) for index in range(len(turn.held))]
            if unknown := [place for place in self._waiting.get(turn.id, {}) if place not in places]:
                self._line = self._lines[turn.id]
                raise self._fault(f"the turn record is damaged: 'waiting': no call is held at {unknown[0]!r}")

    def hold(self, turn: Turn, tools: ToolRegistry) -> None:
        """What waited for a word still does: the policy that said so is not in the file, so its decision counts."""
        for index, reason in self._waiting.get(turn.id, {}).items():
            call = turn.held[int(index)]
            tool = tools.get(call["name"])
            if tool is not None:
                turn.waiting.append(PendingCall(call, tool, str(reason), int(index)))
        if turn.held:
            names = [call["name"] for call in turn.held]
            turn.asked = {"policy": Policy(ask=names if self._waiting.get(turn.id) else ())}

    def _record(self, line: str) -> None:
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise self._fault(f"no valid JSON from column {error.colno} on ({error.msg})") from None
        except RecursionError:
            raise self._fault("it is nested too deeply") from None
        kind = record.get("is") if isinstance(record, dict) else None
        if self._count is not None:
            raise self._fault("there is more after the last record")
        take = {
            "conversation": self._head,
            "turn": self._begin,
            "message": self._message,
            "item": self._item,
            "event": self._event,
            "branch": self._branch,
            "end": self._end,
        }.get(str(kind))
        if take is None:
            raise self._fault(f"a record of a kind that this version does not know: {str(kind)[:40]!r}")
        try:
            record = files.unpacked(record)
            if fault := record_fault(record):
                raise self._fault(f"the {kind} record is damaged: {fault}")
            take(record)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, ConversationFileError):
                raise
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise self._fault(f"the {kind} record is damaged: {what}") from None

    def _head(self, record: dict[str, Any]) -> None:
        version = record.get("version")
        if type(version) is not int or not 1 <= version <= files.VERSION:
            raise self._fault(f"version {version!r} of the format; this package reads up to {files.VERSION}")
        self.head = record

    def _begin(self, record: dict[str, Any]) -> None:
        known = {name: record[name] for name in (*files.FIELDS, *files.TIMES) if name in record}
        if record["id"] in self.turns:
            raise self._fault(f"a second turn with the id {record['id']!r}")
        turn = Turn(**{"model": "", "state": "done", "started": 0.0, **known}, id=record["id"])
        if error := record.get("error"):
            turn.error = _error(error["type"], error["message"])
        self._statuses[turn.id] = record.get("statuses", {})
        self._waiting[turn.id] = record.get("waiting", {})
        self._lines[turn.id] = self._line
        if record.get("history") == "messages":
            self._same.append(turn)
        self._turn = self.turns[turn.id] = turn
        self._where = None

    def _message(self, record: dict[str, Any]) -> None:
        place = record.pop("in", None)
        record.pop("is")
        if record["role"] not in ("user", "assistant"):
            raise self._fault(f"a message with the role {record['role']!r}")
        message: Any = {**record, "content_items": []}
        self._where = message["content_items"]
        if place == "before":
            self.before.append(message)
        elif self._turn is None:
            raise self._fault("a message before the first turn")
        elif place == "pending":
            self._turn.pending = message
        else:
            (self._turn.history if place == "history" else self._turn.messages).append(message)

    def _item(self, record: dict[str, Any]) -> None:
        if self._where is None:
            raise self._fault("an item that belongs to no message")
        self._where.append(record["item"])

    def _event(self, record: dict[str, Any]) -> None:
        if self._turn is None:
            raise self._fault("an event before the first turn")
        if self._turn.log is None:
            self._turn.log = EventLog()
        self._turn.log.add(record["at"], record["event"])

    def _branch(self, record: dict[str, Any]) -> None:
        missing = [key for key in record["turns"] if key not in self.turns]
        if missing:
            raise self._fault(f"branch {record['name']!r} names turn {missing[0]!r}, which is not in the file")
        self.branches[record["name"]] = record["turns"]

    def _end(self, record: dict[str, Any]) -> None:
        if not self.head:
            raise self._fault("the first record is missing")
        if self.branches and self.head.get("branch") not in self.branches:
            raise self._fault(f"the branch in use, {self.head.get('branch')!r}, is missing")
        if record["records"] != self._line - 1:
            raise self._fault(f"{record['records']} records were written, {self._line - 1} are here")
        self._count = record["records"]

    def _fault(self, message: str) -> ConversationFileError:
        return ConversationFileError(message, path=self._path, line=self._line)


def _error(kind: str, message: str) -> RestoredError:
    """An error that prints as the one that was saved."""
    return type(str(kind), (RestoredError,), {})(kind, message)


def outcomes_of(messages: Iterable[UniMessage], statuses: Mapping[str, Any]) -> list[ToolOutcome]:
    """The outcomes of the calls in ``messages``; the value of each is the text that the model saw."""
    found: dict[str, ToolOutcome] = {}
    for message in messages:
        for item in message["content_items"]:
            if item["type"] == "tool_call.done":
                call_id = item["tool_call_id"]
                found[call_id] = ToolOutcome(item, None, status=statuses.get(call_id, "ok"))
            elif item["type"] == "tool_result.done" and item["tool_call_id"] in found:
                outcome = found[item["tool_call_id"]]
                outcome.text = outcome.value = item["text"]
                outcome.images = list(item.get("images") or ())
    return list(found.values())


# traces


def _trace_id(path: Path) -> str:
    """What a trace was called; the name of the file for one that was moved elsewhere."""
    try:
        return path.resolve().relative_to(tracing.trace_directory().resolve()).with_suffix("").as_posix()
    except ValueError:
        return path.stem


def _from_trace(path: Path, text: str, tools: Any, client: Any, options: dict[str, Any]) -> Conversation:
    try:
        messages = tracing.load(path)
        config = dict(json.loads(text)["config"])
    except (ValueError, KeyError, TypeError):
        what = "this is no conversation, and no trace"
        try:
            json.loads(text)
        except RecursionError:
            raise ConversationFileError(f"{what}: it is nested too deeply", path=path) from None
        except json.JSONDecodeError as error:
            raise ConversationFileError(
                f"{what}: no valid JSON from column {error.colno} on ({error.msg})", path=path, line=error.lineno
            ) from None
        raise ConversationFileError(what, path=path) from None
    model = str(config.pop("model", ""))
    config.pop("tools", None)
    head = {"model": model, "config": config, "name": _trace_id(path)}
    try:
        conversation = _made(head, tools, client, options)
    except ValueError as error:
        raise ConversationFileError(f"its config is damaged: {error}", path=path) from None
    conversation.turns = turns_of(messages, model, config)
    conversation._branches = {conversation.branch: conversation.turns}
    conversation._load_history()
    return conversation


def turns_of(messages: Iterable[UniMessage], model: str, config: Mapping[str, Any] | None = None) -> list[Turn]:
    """A plain list of messages as turns: one for each message of the user that is more than tool results."""
    turns: list[Turn] = []
    for message in messages:
        results = [item["type"] == "tool_result.done" for item in message["content_items"]]
        asks = message["role"] == "user" and not (results and all(results))
        if asks or not turns:
            parent = turns[-1].id if turns else None
            started = (message.get("created_at") or 0) / 1000
            turn = Turn(model=model, state="done", reason="answer", parent=parent, started=started)
            turn.id = f"turn{len(turns) + 1}"
            turn.config = {key: value for key, value in (config or {}).items() if value is not None}
            turns.append(turn)
        turn = turns[-1]
        turn.messages.append(copy_message(message))
        turn.history.append(copy_message(message))
        if message["role"] == "assistant":
            if message.get("usage_metadata") is not None:
                turn.usage = tokens.add(turn.usage, message["usage_metadata"])
            turn.finish_reason = message.get("finish_reason")
            turn.origin = message.get("origin")
            if message.get("created_at") and turn.started:
                turn.duration = max((message["created_at"] or 0) / 1000 - turn.started, 0.0)
    for turn in turns:
        turn.outcomes = outcomes_of(turn.messages, {})
        turn.tools = sorted({outcome.name for outcome in turn.outcomes})
    return turns
