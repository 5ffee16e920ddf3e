"""What one answer draws, with a clock of our own: order, pace, sizes, and that no character is lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import scripted

from mmsp_nb.notebook.output import LiveOutput
from mmsp_nb.notebook.pacing import Pacer, ticks
from mmsp_nb.notebook.stretch import Message
from mmsp_nb.tools import ToolOutcome

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from output_budget import answer, simulate


class Screen:
    """Feeds an output and keeps what it sends."""

    def __init__(self, *, live: bool = True) -> None:
        self.sent: list[Message] = []
        self.now = 0.0
        self.output = LiveOutput(self.sent.append, label="model", live=live, now=0.0)

    def at(self, now: float, *events: Any) -> Screen:
        """Let time pass, drawing what is due meanwhile; then the events come."""
        while (due := self.output.due()) is not None and due < now:
            before = len(self.sent)
            self.now = max(due, self.now)
            self.output.tick(self.now)
            if len(self.sent) == before and self.output.due() == due:
                break
        self.now = now
        for event in events:
            for each in event if isinstance(event, list) else [event]:
                self.output.event({"type": "event", "event": each} if "role" in each else each, now)
        self.output.tick(now)
        return self

    def shown(self) -> list[tuple[str, dict[str, str]]]:
        """What stands on the screen, in order."""
        places: dict[str, Message] = {}
        for index, message in enumerate(self.sent):
            key = message.display_id or f"#{index}"
            assert message.update == (key in places), "an update of nothing, or a second display"
            places[key] = message
        return [(message.metadata["mmsp"]["kind"], message.data) for message in places.values()]

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.shown()]


def called(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"type": "turn_end", "turn": 1, "usage_metadata": None, "finish_reason": "stop", "calls": list(calls)}


def items(name: str, **arguments: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events of a call, and a copy of its item as the agent hands it on."""
    events = scripted.call(name, **arguments)
    return events, dict(events[-1]["content_items"][0])


def outcome(call: dict[str, Any], text: str = "done", **more: Any) -> ToolOutcome:
    return ToolOutcome(call, None, value=text, text=text, **more)


@pytest.mark.parametrize("kind", ["mixed", "code", "line"])
@pytest.mark.parametrize("rate", [50, 1_000, 20_000, 1e9])
def test_sixteen_thousand_characters_stay_in_the_budget(kind: str, rate: float) -> None:
    found = simulate(answer(16_000, kind), rate)
    assert found["exact"]
    assert found["most_messages"] <= 12
    assert found["most_bytes"] <= 100_000
    assert found["oldest"] <= 0.15
    assert found["first"] <= 0.1
    assert found["stored"] <= 7.5 * 16_000


@pytest.mark.parametrize("kind", ["mixed", "code", "line"])
@pytest.mark.parametrize("rate", [1_000, 20_000, 1e9])
def test_three_hundred_thousand_characters_stay_in_the_budget_too(kind: str, rate: float) -> None:
    found = simulate(answer(300_000, kind), rate)
    assert found["exact"]
    assert found["most_messages"] <= 12
    assert found["most_bytes"] <= 100_000
    assert found["oldest"] <= 0.3
    assert 210_000 < found["left_out"] < 250_000
    assert found["stored"] <= 7.5 * 80_000


def test_text_calls_and_text_stand_in_their_order() -> None:
    events, call = items("tide", port="Brest")
    screen = Screen().at(0.05, scripted.text("Before. ")).at(0.2, events, called(call))
    screen.output.call_started(call, 0.3)
    screen.output.call_ended(outcome(call, "high at 5"), 0.4)
    screen.at(0.5, scripted.text("After.")).output.close(0.6)
    assert screen.kinds() == ["text", "calls", "text"]
    texts = [data for kind, data in screen.shown() if kind == "text"]
    assert [data["text/plain"] for data in texts] == ["Before. ", "After."]
    assert all(set(data) == {"text/html", "text/markdown", "text/plain"} for data in texts)
    assert screen.shown()[1][1]["text/plain"] == '✓ tide(port="Brest") → high at 5'


def test_the_waiting_line_counts_slowly_and_gives_its_place_to_the_first_token() -> None:
    screen = Screen().at(0.2)
    assert screen.sent == []
    screen.at(29.0)
    assert screen.kinds() == ["status"]
    assert "25 s" in screen.shown()[0][1]["text/plain"]
    assert len(screen.sent) <= 15
    screen.at(30.1, scripted.text("Hello"))
    assert screen.kinds() == ["text"]


def test_the_first_token_is_on_the_screen_at_once() -> None:
    screen = Screen().at(1.0)
    count = len(screen.sent)
    screen.at(1.02, scripted.text("H")[0])
    assert len(screen.sent) == count + 1


def test_thinking_is_open_while_it_runs_and_folded_afterwards() -> None:
    screen = Screen().at(0.1, scripted.thinking("Let me see. " * 300)[0])
    live = screen.shown()[0][1]["text/html"]
    assert "<details open" in live
    assert len(live) < 3_000
    screen.at(4.0, scripted.text("So.")).output.close(5.0)
    done = screen.shown()[0][1]
    assert "<details style" in done["text/html"]
    assert done["text/html"].count("Let me see.") == 300
    assert "Thought for 3.9 s" in done["text/html"]
    assert screen.kinds() == ["thinking", "text"]


def test_empty_thinking_and_white_space_leave_nothing_behind() -> None:
    screen = Screen(live=False).at(0.1, scripted.thinking(""), scripted.text("\n\n"))
    screen.output.close(0.2)
    assert screen.sent == []


def test_two_calls_without_output_share_one_display_and_change_in_place() -> None:
    (first, one), (second, two) = items("a"), items("b")
    screen = Screen().at(0.1, first, second, called(one, two))
    for now, call in ((0.2, one), (0.3, two)):
        screen.output.call_started(call, now)
        screen.output.call_ended(outcome(call, f"result {call['name']}"), now + 0.05)
    screen.at(0.6, scripted.text("x")).output.close(0.7)
    assert screen.kinds() == ["calls", "text"]
    assert screen.shown()[0][1]["text/plain"] == "✓ a() → result a\n✓ b() → result b"


def test_what_a_tool_shows_stands_between_its_line_and_the_next_one() -> None:
    (first, one), (second, two) = items("a"), items("b")
    screen = Screen().at(0.1, first, second, called(one, two)).at(0.4)
    screen.output.call_started(one, 0.5)
    screen.output.output_coming(one)
    before = len(screen.sent)
    assert "<b>b</b>" not in screen.shown()[-1][1]["text/html"], "b's line would stand above a's output"
    screen.output.call_ended(outcome(one), 0.6)
    screen.output.call_started(two, 0.7)
    assert len(screen.sent) > before
    screen.output.call_ended(outcome(two), 0.8)
    screen.output.close(0.9)
    assert [data["text/plain"] for _, data in screen.shown()][:2] == ["✓ a() → done", "✓ b() → done"]


def test_text_after_a_call_in_one_response_does_not_part_the_call_from_its_output() -> None:
    events, call = items("a")
    screen = Screen().at(0.1, events).at(0.4, scripted.text("said later"), called(call))
    screen.output.call_started(call, 0.6)
    screen.output.output_coming(call)
    assert [kind for kind, data in screen.shown() if data.get("text/plain") != ""][-1] == "calls"
    assert "<b>a</b>" in screen.shown()[-1][1]["text/html"]


def test_arguments_that_are_long_in_coming_are_seen_to_come() -> None:
    events = scripted.call("write", text="x" * 5_000)
    screen = Screen().at(0.1, events[0]).at(0.5, events[1]).at(1.0)
    assert "writing arguments, 2,506 characters" in screen.shown()[-1][1]["text/html"]


def test_a_failed_call_is_marked_and_unfolds_to_what_happened() -> None:
    events, call = items("tide", port="Brest <b>")
    screen = Screen().at(0.1, events, called(call))
    screen.output.call_started(call, 0.2)
    screen.output.call_ended(outcome(call, "Error: KeyError: <img src=x>", status="error"), 0.3)
    screen.output.close(0.4)
    data = screen.shown()[0][1]
    assert data["text/plain"].startswith("✗ tide(")
    assert "<img" not in data["text/html"]
    assert "&lt;img" in data["text/html"]


def test_calls_that_were_interrupted_say_so() -> None:
    events, call = items("slow")
    screen = Screen().at(0.1, events, called(call))
    screen.output.call_started(call, 0.2)
    screen.output.close(0.4, note="stopped")
    assert screen.shown()[0][1]["text/plain"] == "■ slow() → interrupted"
    assert screen.shown()[-1][1]["text/plain"] == "stopped"


def test_a_note_stands_below_the_text_and_not_in_it() -> None:
    screen = Screen().at(0.1, scripted.text("Half of"))
    screen.output.close(0.2, note="stopped after 0.1 s", footer="model · 3 tokens")
    (_, data), *rest = screen.shown()
    assert rest == []
    assert data["text/plain"] == data["text/markdown"] == "Half of"
    assert "stopped after 0.1 s · model · 3 tokens" in data["text/html"]


def test_when_nobody_watches_each_part_is_sent_once_and_nothing_differs_between_runs() -> None:
    runs = []
    for _ in range(2):
        events, call = items("tide", port="Brest")
        screen = Screen(live=False).at(5.0, scripted.thinking("Hm."), scripted.text("Before.", " More."), events)
        screen.at(6.0, called(call))
        screen.output.call_started(call, 7.0)
        screen.output.call_ended(outcome(call, duration=3.5), 10.0)
        screen.at(20.0, scripted.text("After."))
        screen.output.close(30.0, footer="model · 3 tokens · 30 s")
        assert all(not message.update and message.display_id is None for message in screen.sent)
        runs.append([(message.data, message.metadata) for message in screen.sent])
    assert runs[0] == runs[1]
    assert [metadata["mmsp"]["kind"] for _, metadata in runs[0]] == ["thinking", "text", "calls", "text"]
    assert "tokens" not in str(runs[0])
    assert " s<" not in str(runs[0])


def test_pictures_and_sounds_of_the_model_are_shown_and_other_data_is_named() -> None:
    screen = Screen()
    screen.at(0.1, scripted.picture(b"\x89PNG"), scripted.picture(b"RIFF", "audio/wav"))
    screen.at(0.2, scripted.picture(b"<svg onload=x>", "image/svg+xml"))
    shown = [data for _, data in screen.shown()]
    assert shown[0]["image/png"] == "iVBORw=="
    assert '<audio controls src="data:audio/wav;base64,' in shown[1]["text/html"]
    assert "svg" not in shown[2]["text/html"].replace("image/svg+xml", "")


def test_a_key_in_the_text_is_masked_in_every_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", "a-secret-key-value")
    events, call = items("show", key="a-secret-key-value")
    screen = Screen().at(0.1, scripted.text("The key is a-secr")[0]).at(0.3, scripted.text("et-key-value.")[0])
    screen.at(0.6, scripted.thinking("a-secret-key-value"), events, called(call))
    screen.output.call_started(call, 0.7)
    screen.output.call_ended(outcome(call, "a-secret-key-value"), 0.8)
    screen.output.close(0.9)
    assert "a-secr" not in str([message.data for message in screen.sent])
    assert screen.shown()[0][1]["text/plain"] == "The key is ***."


def test_the_pacer_keeps_its_limits_whatever_is_asked_of_it() -> None:
    pacer, now, times = Pacer(), 0.0, []
    for _ in range(100):
        now = max(now, pacer.ready_at(now, size=20_000, first=True))
        pacer.sent(now, 20_000)
        times.append(now)
    for begin in times:
        within = [time for time in times if begin <= time < begin + 1 - 1e-9]
        assert len(within) <= 5


def test_ticks_become_rare() -> None:
    seconds, count = 0.0, 0
    while seconds < 600:
        seconds = ticks(seconds)
        count += 1
    assert count < 45
