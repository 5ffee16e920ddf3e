"""Who meets the faults of the matrix: a client, an agent, a cell, a background cell, a comparison."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from clients import CLIENTS, user
from fault_rows import Row
from site_of_faults import KEY, Site

from mmsp_nb import Agent, AutoLLMClient, Conversation, loop
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.testing import Reply, streams

sys.path.append(str(Path(__file__).resolve().parent.parent / "switching"))
from wire_rules import RULES

__all__ = ["CONSUMERS", "Cell", "consume"]

ANSWER = "About 6.4 m at noon."
"""What is answered where nothing is wrong."""

ADVICE = re.compile(
    r"\b(Ask again|Check|Correct|Wait|raise max_tokens|Is (the|base_url)|Does this|Look|try again|Perhaps|Allow more|"
    r"Send|send less|start the server|let SSL_CERT_FILE|The key may not|Take|looks? at)\b"
)
WAIT = 20.0


class Everything(set[str]):
    """Whatever is signed was signed here."""

    def __contains__(self, value: object) -> bool:
        return True

    def __or__(self, other: Any) -> Everything:
        return self


class Cell:
    """One cell of the matrix: its clients, what the provider answers, and what was found wrong."""

    def __init__(self, site: Site, row: Row, client_type: str, reply: Reply | None) -> None:
        self.site, self.row, self.client_type, self.reply = site, row, client_type, reply
        self.dialect = CLIENTS[client_type][0]
        self.problems: list[str] = []
        self.ends: set[str] = set()
        self.ran: list[str] = []

    def __enter__(self) -> Cell:
        self.site.provider.reset()
        self.site.screen.clear()
        self.before = self.site.counts()
        row, site = self.row, self.site
        self.good = site.client(self.client_type)
        self.moved = bool(row.address or row.options)
        address = {"plain": site.provider.url().replace("http:", "https:")}.get(row.address) or getattr(
            site, row.address or "-", row.address
        )
        self.bad = site.client(self.client_type, "/bad", address, **row.options)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.good = self.bad = None  # type: ignore[assignment]
        if error is None:
            more = self.site.left_over(self.before)
            self.expect(not more, f"left open: {more}")

    def expect(self, true: Any, problem: str) -> bool:
        if not true:
            self.problems.append(problem)
        return bool(true)

    # the provider

    def all_well(self) -> None:
        """From now on everything is answered."""
        self.site.provider.reset()
        self.site.provider.when(lambda request: True, streams.reply("thinking", self.dialect))

    def trouble(self) -> None:
        """From now on the bad address meets the fault; an answer that comes whole is followed by an ordinary one."""
        provider = self.site.provider
        provider.reset()
        if self.reply is not None:
            times = 1 if self.row.may_be_whole(self.client_type) and not self.row.cuts else None
            provider.when(lambda request: request.path.startswith("/bad"), self.reply, times)
        provider.when(lambda request: True, streams.reply("thinking", self.dialect))

    # what must be true

    def check_error(self, error: BaseException | None, shown: str | None = None) -> None:
        """``error`` is what the row says, and speaks of what to do."""
        expected = self.row.expected(self.client_type)
        if error is None:
            self.ends.add("a whole answer")
            self.expect(self.row.may_be_whole(self.client_type), "no error, although something was wrong")
            return
        name = type(error).__name__
        self.ends.add(name)
        said = str(error)
        self.expect(isinstance(error, MMSPError) and name in expected, f"{name} is not expected: {said[:200]}")
        self.expect(ADVICE.search(said), f"no advice in: {name}: {said[:300]}")
        self.expect(KEY not in said, "the key stands in the error")
        self.expect(
            "\n" not in said and len(said) < 1500, f"the error is not one line of bearable length: {said[:100]}"
        )
        if shown is not None:
            place = shown.replace("&#x27;", "'").replace("&quot;", '"')
            self.expect(name in place, f"{name} is not shown")

    def check_tools(self, error: BaseException | None) -> None:
        if error is not None:
            self.expect(not self.ran, f"tools ran although the answer failed: {self.ran}")
        self.expect(len(self.ran) == len(set(self.ran)), f"a tool ran twice on the same call: {self.ran}")

    def check_wire(self) -> None:
        """The latest request is one that the vendor would take."""
        last = self.site.provider.last
        try:
            RULES[self.dialect](SimpleNamespace(name="any", dialect=self.dialect), last.body, Everything())
        except (AssertionError, KeyError, IndexError) as error:
            self.problems.append(
                f"the next request would be refused ({type(error).__name__}: {error}): {last.body}"[:900]
            )

    def tide_table(self, port: str, days: int = 1) -> str:
        """The tides of a port."""
        self.ran.append(f"{port} {days}")
        return "6.4 m"

    def conversation(self) -> Conversation:
        """A chat with one answered question, about to be asked through the bad client."""
        self.all_well()
        chat = Conversation(client=self.good if self.moved else self.bad, tools=[self.tide_table])
        chat.ask("A first question")
        if self.moved:
            chat.switch(client=self.bad)
        return chat


def _answers(message: dict[str, Any]) -> dict[str, Any]:
    """The next user's message after ``message``, results of its calls included."""
    results = [
        {"type": "tool_result.done", "text": "6.4 m", "tool_call_id": item["tool_call_id"]}
        for item in message["content_items"]
        if item["type"] == "tool_call.done"
    ]
    return {"role": "user", "content_items": [*results, {"type": "text.done", "text": "And the next one?"}]}


async def _heard(stream: Any, heard: list[Any]) -> None:
    async with contextlib.aclosing(stream) as events:
        async for event in events:
            heard.append(event)


def _caught(coroutine: Any) -> BaseException | None:
    try:
        loop.submit(coroutine).result(WAIT)
    except Exception as error:
        return error
    return None


def _text(events: list[Any]) -> str:
    deltas = (item for event in events if event["event_type"] == "delta" for item in event["content_items"])
    return "".join(item["text"] for item in deltas if item["type"] == "text.delta")


def by_client(cell: Cell) -> None:
    cell.all_well()
    first = cell.good if cell.moved else cell.bad
    cell.expect(_caught(_heard(first.streaming_response_stateful(user("Q1")), [])) is None, "the first question failed")
    client: AutoLLMClient = cell.bad
    client.set_history(first.get_history())
    before = client.get_history()
    cell.trouble()
    events: list[Any] = []
    error = _caught(_heard(client.streaming_response_stateful(user("Q2")), events))
    cell.check_error(error)
    if error is None:
        cell.expect(events and events[-1]["event_type"] == "stop", "no stop at the end")
        cell.expect(len(client.get_history()) == 4, "the answer is not in the history")
    else:
        cell.expect(client.get_history() == before, "the history has changed")
        cell.expect(all(event["event_type"] == "delta" for event in events), "a stop was delivered, and an error too")
        cell.expect(_text(events).startswith(cell.row.says), f"{cell.row.says!r} is lost: {_text(events)[:80]!r}")
    if cell.moved:
        cell.good.set_history(client.get_history())
        client = cell.good
    cell.all_well()
    more: list[Any] = []
    error = _caught(_heard(client.streaming_response_stateful(_answers(client.get_history()[-1])), more))
    cell.expect(error is None and _text(more) == ANSWER, f"the next question failed: {error!r}")
    cell.check_wire()


def by_agent(cell: Cell) -> None:
    cell.all_well()
    first = cell.good if cell.moved else cell.bad
    error = _caught(_heard(Agent(first, [cell.tide_table]).run("Q1"), []))
    cell.expect(error is None, "the first question failed")
    client: AutoLLMClient = cell.bad
    client.set_history(first.get_history())
    cell.trouble()
    agent = Agent(client, [cell.tide_table], max_turns=3)
    heard: list[Any] = []
    error = _caught(_heard(agent.run("Q2"), heard))
    cell.check_error(error)
    cell.check_tools(error)
    said = _text([event["event"] for event in heard if event["type"] == "event"])
    if error is None:
        cell.expect(heard[-1]["type"] == "end", "no end")
    else:
        cell.expect(said.startswith(cell.row.says), f"{cell.row.says!r} is lost: {said[:80]!r}")
        cell.expect(agent.pending is not None, "nothing is pending that could be sent again")
    if cell.moved:
        cell.good.set_history(client.get_history())
        client = cell.good
    cell.all_well()
    agent_after = Agent(client, [cell.tide_table])
    more: list[Any] = []
    error = _caught(_heard(agent_after.run(agent.pending or "Q3"), more))
    cell.expect(error is None and more and more[-1]["text"] == ANSWER, f"the next question failed: {error!r}")
    cell.check_wire()


def _run(cell: Cell, code: str) -> Any:
    """Run a cell of the notebook. Its error, or None."""
    with cell.site.screen.watching():
        result = cell.site.shell.run_cell(code)
    return result.error_before_exec or result.error_in_exec


def _next_cell(cell: Cell, chat: Conversation) -> None:
    if cell.moved:
        chat.switch(client=cell.good)
    cell.all_well()
    error = _run(cell, "%%mmsp\nAnd the next question?")
    cell.expect(error is None, f"the next cell failed: {error!r}")
    cell.expect(chat.turns[-1].state == "done" and chat.turns[-1].text == ANSWER, f"next: {chat.turns[-1]!r}")
    cell.check_wire()


def _check_turn(cell: Cell, chat: Conversation, error: BaseException | None) -> None:
    turn = chat.turns[-1]
    if error is None:
        cell.expect(turn.state == "done", f"the turn is {turn.state}")
        return
    cell.expect(turn.state in ("failed", "partial"), f"the turn is {turn.state}")
    cell.expect(turn.error is error, f"the turn's error is {turn.error!r}")
    if cell.row.says:
        cell.expect(
            turn.state == "partial" and turn.text.startswith(cell.row.says), f"{cell.row.says!r} is lost: {turn!r}"
        )
        cell.expect(cell.row.says.strip() in cell.site.screen.text, f"{cell.row.says!r} is not shown")


def _chats(cell: Cell) -> Any:
    return cell.site.shell.magics_manager.registry["MMSPMagics"].chats


def _open(cell: Cell) -> Conversation:
    chat = cell.conversation()
    _chats(cell).put("chat", chat)
    cell.site.screen.clear()
    cell.trouble()
    return chat


def by_magic(cell: Cell) -> None:
    chat = _open(cell)
    error = _run(cell, "%%mmsp\nThe question in trouble")
    cell.check_error(error, cell.site.screen.text)
    cell.check_tools(error)
    _check_turn(cell, chat, error)
    _next_cell(cell, chat)


def by_background(cell: Cell) -> None:
    chat = _open(cell)
    error = _run(cell, "%%mmsp --background\nThe question in trouble")
    cell.expect(error is None, f"the cell that asked has failed: {error!r}")
    behind = _chats(cell).behind
    deadline = time.monotonic() + WAIT
    while behind.count() and time.monotonic() < deadline:
        time.sleep(0.002)
    cell.expect(not behind.count(), "the background answer never ended")
    error = chat.turns[-1].error
    cell.check_error(error, cell.site.screen.text)
    cell.check_tools(error)
    _check_turn(cell, chat, error)
    _next_cell(cell, chat)


def by_compare(cell: Cell) -> None:
    chat = _open(cell)
    names = cell.site.shell.user_ns
    names["good"], names["bad"], names["worse"] = cell.good, cell.bad, cell.bad.sibling()
    turns = len(chat.turns)
    error = _run(cell, "%%mmsp --compare bad,good\nThe question in trouble")
    cell.expect(error is None, f"one answered, and the cell failed all the same: {error!r}")
    cell.expect(ANSWER in cell.site.screen.text, "the good answer is not shown")
    cell.expect(len(chat.turns) == turns, "a comparison has changed the chat")
    shown = cell.site.screen.text
    cell.trouble()
    error = (
        _run(cell, "%%mmsp --compare bad,worse\nThe same question")
        if not cell.row.may_be_whole(cell.client_type)
        else None
    )
    if cell.row.expected(cell.client_type) and not cell.row.may_be_whole(cell.client_type):
        cell.check_error(error, shown)
        cell.expect(cell.row.says.strip() in shown, f"{cell.row.says!r} is not shown")
        cell.expect(not cell.ran, f"tools ran although the answer failed: {cell.ran}")
    else:
        cell.ends.add("a whole answer")
    for name in ("good", "bad", "worse"):
        names.pop(name)
    _next_cell(cell, chat)


CONSUMERS = {
    "client": by_client,
    "Agent": by_agent,
    "magic": by_magic,
    "background": by_background,
    "compare": by_compare,
}


def consume(consumer: str, cell: Cell) -> None:
    """Play ``cell`` to ``consumer``; what goes wrong in an unforeseen way is a problem like any other."""
    try:
        CONSUMERS[consumer](cell)
    except Exception as error:
        cell.problems.append(f"broke with {type(error).__name__}: {error}")
        raise
