"""Branches, edit, hide, pin, compact, undo and redo: what is shown and what is sent."""

from __future__ import annotations

import copy
from decimal import Decimal

import pytest
from agent_scripted import ScriptedClient, call, text, thinking

from mmsp_nb import Conversation, diff
from mmsp_nb.money import BudgetExceededError
from mmsp_nb.protocol.errors import UnsupportedOperationError
from mmsp_nb.turns import TurnList


class Copied(ScriptedClient):
    def sibling(self):
        return Copied(model=self.model)


def talk(*answers: str) -> Conversation:
    chat = Conversation(client=Copied(*[[text(answer)] for answer in answers]))
    for number in range(len(answers)):
        chat.ask(f"question {number + 1}")
    return chat


def sent(chat: Conversation) -> list[str]:
    return [item["text"] for message in chat.client.get_history() for item in message["content_items"]]


def prompts(chat: Conversation) -> list[str]:
    return [turn.prompt for turn in chat.turns]


def test_a_hidden_turn_is_kept_and_not_sent():
    chat = talk("one", "two", "three")
    chat.hide(1)
    assert prompts(chat) == ["question 1", "question 2", "question 3"]
    assert sent(chat) == ["question 1", "one", "question 3", "three"]
    assert [turn.stale for turn in chat.turns] == [False, False, True]
    chat.show(1)
    assert sent(chat) == ["question 1", "one", "question 2", "two", "question 3", "three"]
    assert not any(turn.stale or turn.hidden for turn in chat.turns)


def test_what_is_asked_after_hiding_is_not_stale():
    chat = talk("one", "two", "three")
    chat.hide(0)
    chat.client.responses.append([text("four")])
    chat.ask("question 4")
    assert [turn.stale for turn in chat.turns] == [False, True, True, False]
    chat.show()
    assert [turn.stale for turn in chat.turns] == [False, False, False, True]


def test_hiding_a_turn_hides_what_goes_on_from_it():
    chat = Conversation(client=Copied([call("look")], [text("done")]), tools=[look], max_turns=1)
    chat.ask("go")
    chat.ask()
    assert chat.turns[1].resumes
    assert chat.hide(0) == chat.turns
    assert sent(chat) == []
    assert chat.show(1) == [chat.turns[1], chat.turns[0]]
    assert len(chat.client.get_history()) == 4


def look() -> str:
    """Look."""
    return "seen"


def test_every_operation_can_be_taken_back_and_done_again():
    chat = talk("one", "two", "three")
    states = [(prompts(chat), sent(chat), chat.branch)]
    for operation in (
        lambda: chat.hide(0),
        lambda: chat.pin(0),
        lambda: chat.remove(2),
        lambda: chat.split(0, name="other"),
        lambda: chat.checkout("main"),
        lambda: chat.drop("other"),
        lambda: chat.compact("short", keep=0),
        chat.reset,
    ):
        operation()
        states.append((prompts(chat), sent(chat), chat.branch))
    for state in states[-2::-1]:
        chat.undo()
        assert (prompts(chat), sent(chat), chat.branch) == state
    for state in states[1:]:
        chat.redo()
        assert (prompts(chat), sent(chat), chat.branch) == state
    with pytest.raises(UnsupportedOperationError, match="nothing to redo"):
        chat.redo()


def test_a_question_taken_back_comes_back_but_not_after_another_one():
    chat = talk("one", "two")
    chat.undo()
    assert chat.redo()[0].prompt == "question 2"
    assert sent(chat)[-1] == "two"
    chat.undo()
    chat.client.responses.append([text("other")])
    chat.ask("another")
    with pytest.raises(UnsupportedOperationError, match="nothing to redo"):
        chat.redo()


def test_edit_asks_again_in_a_branch_and_keeps_the_old_one():
    chat = talk("one", "two", "three")
    chat.client.responses.append([text("zwei")])
    answer = chat.edit(1, "question 2, in German")
    assert answer.text == "zwei"
    assert prompts(chat) == ["question 1", "question 2, in German"]
    assert [turn.prompt for turn in chat.branches["main"]] == ["question 1", "question 2", "question 3"]
    assert chat.branches["main"][0] is chat.turns[0]
    chat.checkout("main")
    assert sent(chat)[-1] == "three"


def test_an_edit_that_is_refused_leaves_no_branch():
    chat = talk("one")
    with pytest.raises(Exception, match="empty"):
        chat.edit(0, "  ")
    assert list(chat.branches) == ["main"] and prompts(chat) == ["question 1"]


def test_names_of_branches_are_checked():
    chat = talk("one")
    chat.split(0, name="draft")
    with pytest.raises(UnsupportedOperationError, match="did you mean 'draft'"):
        chat.checkout("draf")
    with pytest.raises(UnsupportedOperationError, match="already"):
        chat.split(name="draft")
    with pytest.raises(UnsupportedOperationError, match="in use"):
        chat.drop("draft")


def test_compact_puts_a_summary_in_place_and_leaves_pinned_turns():
    chat = talk("one", "two", "three", "four")
    chat.pin(0)
    made = chat.compact("They counted.", keep=1)
    assert made is not None and made.summary
    assert sent(chat) == [
        "question 1",
        "one",
        "Summary of the conversation so far:\n\nThey counted.",
        "Understood.",
        "question 4",
        "four",
    ]
    assert not any(turn.stale for turn in chat.turns)
    assert chat.undo() == [made]
    assert len(sent(chat)) == 8


def test_compact_asks_the_model_for_the_summary():
    chat = talk("one", "two", "three")
    asked = Copied([text("all of it")])
    chat.client.sibling = lambda: asked
    made = chat.compact(keep=1)
    assert "all of it" in made.prompt
    assert made.usage == {"cached_tokens": None, "prompt_tokens": 10, "thoughts_tokens": None, "response_tokens": 5}
    messages, config = asked.requests[0]
    assert [item["text"] for m in messages[:-1] for item in m["content_items"]] == [
        "question 1",
        "one",
        "question 2",
        "two",
    ]
    assert "tools" not in config
    assert chat.compact(keep=1) is None


def test_a_copy_shares_nothing_that_changes():
    chat = talk("one", "two")
    for other in (chat.fork(), copy.copy(chat), copy.deepcopy(chat)):
        other.hide(0)
        other.turns[1].messages[0]["content_items"][0]["text"] = "changed"
        assert sent(chat) == ["question 1", "one", "question 2", "two"]
        assert not chat.turns[0].hidden
    chat.client.get_history()[0]["content_items"].clear()
    chat.messages[0]["content_items"].clear()
    assert sent(chat)[0] == "question 1"


def test_a_question_costs_the_same_after_many(monkeypatch):
    chat = talk(*["x"] * 30)
    monkeypatch.setattr(chat.client, "get_history", lambda: pytest.fail("the whole history was copied"))
    chat.client.responses.append([text("y")])
    chat.ask("more")
    assert chat.turns[-1].text == "y"


def test_what_a_question_looks_at_does_not_grow_with_the_turns():
    looked = []

    class Counted(TurnList):
        def __iter__(self):
            looked.append("all")
            return super().__iter__()

    chat = talk(*["x"] * 10)
    chat.turns = chat._branches["main"] = Counted(chat.turns)
    chat.client.responses.append([text("y")])
    chat.ask("more")
    assert looked == []
    assert len(list(chat.turns)) == 11 and looked == ["all"]


def test_the_events_of_an_answer_are_kept_with_their_times():
    script = [thinking("hm", "m"), text("a ", "b"), call("look")]
    client = Copied(script, [text("end")])
    seen = []
    chat = Conversation(client=client, tools=[look])
    chat.watch(lambda turn, event: seen.append(event["event"]) if event and event["type"] == "event" else None)
    chat.ask("go")
    log = list(chat.turns[0].log)
    assert [event["content_items"] for _, event in log] == [event["content_items"] for event in seen]
    assert [event["event_type"] for _, event in log].count("stop") == 2
    assert [at for at, _ in log] == sorted(at for at, _ in log)


def test_the_log_is_small():
    from mmsp_nb.eventlog import EventLog

    log = EventLog()
    words = [f"word{n} " for n in range(1000)]
    for n, word in enumerate(words):
        log.add(n / 10, _event({"type": "text.delta", "text": word}))
    log.add(100, _event({"type": "text.done", "text": "".join(words)}))
    assert [event["content_items"][0]["text"] for _, event in log][:-1] == words
    assert len(log._whole) == 1


def _event(item):
    return {
        "role": "assistant",
        "event_type": "delta",
        "content_items": [item],
        "usage_metadata": None,
        "finish_reason": None,
        "created_at": 1,
    }


def test_watchers_are_told_and_cannot_break_an_answer():
    chat = talk("one")
    told = []
    chat.watch(lambda turn, event: 1 / 0)
    stop = chat.watch(lambda turn, event: told.append((turn, event and event["type"])))
    chat.client.responses.append([text("two")])
    chat.ask("again")
    turn = chat.turns[-1]
    assert told[0] == (turn, None) and told[-1] == (turn, None) and (turn, "end") in told
    told.clear()
    chat.hide(0)
    assert told == [(None, None)]
    stop()
    chat.show()
    assert told == [(None, None)]


def test_the_estimate_builds_on_what_the_provider_counted():
    chat = talk("one")
    assert chat.estimate().tokens == chat.estimate().exact == 15
    longer = chat.estimate("x" * 400)
    assert longer.exact == 15 and 100 <= longer.tokens - 15 <= 110
    assert longer.window is None and longer.share is None
    chat.client.model = "gpt-5.5"
    assert 0 < chat.estimate().share < 0.01
    chat.client.responses.append([text("two")])
    chat.ask("more")
    chat.hide(0)
    assert chat.estimate().exact == 0


def test_a_spent_budget_stops_the_next_question():
    chat = talk("one")
    chat.turns[0].prices = {"prompt_tokens": 1_000_000, "response_tokens": 1_000_000}
    assert chat.cost == Decimal(15)
    chat.budget = 15
    with pytest.raises(BudgetExceededError, match=r"\$15\.0000"):
        chat.ask("again")
    assert [turn.state for turn in chat.turns] == ["done", "failed"]
    assert len(chat.client.requests) == 1
    chat.budget = None
    chat.client.responses.append([text("two")])
    assert chat.ask().text == "two"
    assert chat.turns[-1].prompt == "again"


@pytest.mark.parametrize("name", [5, "a\nb", "\x1b[31mred", "  ", ("a",)])
def test_a_branch_has_a_line_of_text_for_its_name(name):
    chat = talk("one")
    with pytest.raises(UnsupportedOperationError, match="a branch's name is a line of text, not"):
        chat.split(name=name)
    assert list(chat.branches) == ["main"]


def test_a_branch_that_is_not_there_is_refused_with_those_that_are():
    chat = talk("one")
    chat.split(name="draft")
    with pytest.raises(UnsupportedOperationError, match="no branch 'zzz'; there are main, draft"):
        chat.checkout("zzz")


@pytest.mark.parametrize("keep", [-1, "a", 1.5, True, None])
def test_compact_keeps_a_whole_number_of_turns(keep):
    chat = talk("one", "two", "three")
    with pytest.raises(ValueError, match="keep is how many turns stay"):
        chat.compact("short", keep=keep)
    assert not any(turn.hidden for turn in chat.turns)


@pytest.mark.parametrize("summary", ["", "  ", 5])
def test_a_summary_is_a_text_that_says_something(summary):
    chat = talk("one", "two", "three")
    with pytest.raises(ValueError, match="summary is a text"):
        chat.compact(summary, keep=0)


def test_a_client_that_is_none_is_refused_before_anything_changes():
    chat = talk("one")
    before = chat.client
    for use in (lambda: chat.switch(client=5), lambda: chat.fork(client="gpt-5.5")):
        with pytest.raises(TypeError, match="client must be an AutoLLMClient"):
            use()
    assert chat.client is before
    assert sent(chat) == ["question 1", "one"]


def test_no_view_of_a_conversation_shows_a_key():
    key = "sk-proj-aB3dE6gH9kL2mN5pQ8rS"
    chat = talk("one")
    chat.name = f"my {key}"
    chat.system = f"use {key}"
    chat.turns[0].messages[0]["content_items"][0]["text"] = f"it is {key}"
    other = talk("two")
    views = [repr(chat), repr(chat.turns), chat.export(format="markdown"), str(diff(chat, other)), chat._repr_html_()]
    assert not [view for view in views if key in view]
