"""Conversations for the inspector's tests, made in a kernel. No model is asked."""

from __future__ import annotations

from typing import Any

from mmsp_nb import Conversation
from mmsp_nb.restoring import AbsentClient, RestoredError
from mmsp_nb.tools import ToolOutcome
from mmsp_nb.turns import Turn

USAGE = {"cached_tokens": 5, "prompt_tokens": 1200, "thoughts_tokens": 40, "response_tokens": 80}


def message(role: str, *items: dict[str, Any], **more: Any) -> Any:
    return {"role": role, "content_items": list(items), **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text.done", "text": said}


def turn(*messages: Any, **fields: Any) -> Turn:
    made = Turn(model="quiet-model", state="done", reason="answer", messages=list(messages))
    made.history = list(messages)
    made.usage = dict(USAGE)  # type: ignore[assignment]
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def conversation(turns: list[Turn], name: str = "long") -> Conversation:
    chat = Conversation(client=AbsentClient("quiet-model", "openai-chat", RuntimeError("nobody answers")), name=name)
    chat.turns = chat._branches[chat.branch] = turns
    chat._load_history()
    return chat


def long(items: int) -> Conversation:
    """So many items: five a turn, with thinking and a call with its result."""
    turns = []
    for n in range(items // 5):
        call = {"type": "tool_call.done", "name": "measure", "arguments": {"station": n}, "tool_call_id": f"c{n}"}
        result = {"type": "tool_result.done", "text": f"level {n % 17} at station {n}\n" * 4, "tool_call_id": f"c{n}"}
        made = turn(
            message("user", text(f"Question {n}: how high is the water at station {n}?")),
            message("assistant", {"type": "thinking.done", "thinking": f"Look up station {n}. " * 12}, call),
            message("user", result),
            message("assistant", text(f"At station **{n}** the level is {n % 17} m.\n\n" + "It rises slowly. " * 12)),
        )
        made.outcomes = [ToolOutcome(call, None, text=result["text"])]
        turns.append(made)
    return conversation(turns)


def hostile(payloads: list[str]) -> Conversation:
    """Each payload in every place where a model or a tool can write."""
    turns = []
    for n, bad in enumerate(payloads):
        call = {"type": "tool_call.done", "name": bad, "arguments": {bad: bad, "x": [bad]}, "tool_call_id": f"{n}{bad}"}
        result = {"type": "tool_result.done", "text": bad, "tool_call_id": f"{n}{bad}", "images": [bad]}
        made = turn(
            message("user", text(bad), {"type": "image_url.done", "image_url": bad}),
            message("assistant", {"type": "thinking.done", "thinking": bad}, call),
            message("user", result),
            message(
                "assistant",
                text(bad),
                {"type": "inline_data.done", "data": bad.encode(), "mime_type": bad},
                {"type": "inline_data.done", "data": bad.encode(), "mime_type": f"audio/{bad}"},
                {"type": "inline_data.done", "data": bad.encode(), "mime_type": "image/svg+xml"},
                {"type": "image_url.done", "image_url": f"data:image/svg+xml,{bad}"},
                {"type": "image_url.done", "image_url": f"https://example.invalid/{bad}"},
            ),
            model=bad,
            client_type=bad,
            finish_reason=bad,
            error=RestoredError(bad, bad),
            cell=bad,
        )
        made.outcomes = [ToolOutcome(call, None, text=bad, status="error")]
        turns.append(made)
    chat = conversation(turns, name="".join(payloads[:3]))
    chat.client.model = payloads[4]
    # a branch's name is one line
    chat.split(3, name="".join(each if each.isprintable() else " " for each in payloads[0]))
    chat.checkout("main")
    return chat


def scene() -> Conversation:
    """What the pictures of the documentation show: thinking, parallel tools, a picture, an error, a branch."""
    calls = [
        {"type": "tool_call.done", "name": "tide", "arguments": {"port": port, "day": "tomorrow"}, "tool_call_id": port}
        for port in ("Brest", "Saint-Malo", "Atlantis")
    ]
    levels = {
        "Brest": "high 06:12, 6.9 m; low 12:25, 1.4 m",
        "Saint-Malo": "high 08:03, 12.1 m; low 14:40, 1.1 m",
        "Atlantis": "LookupError: no such port; did you mean 'Atalante'?",
    }
    results = [
        {"type": "tool_result.done", "text": said, "tool_call_id": port, "images": []} for port, said in levels.items()
    ]
    results[0]["images"] = [chart()]
    first = turn(
        message("user", text("When is high water tomorrow in Brest, Saint-Malo and Atlantis? Draw the first one.")),
        message(
            "assistant",
            {
                "type": "thinking.done",
                "thinking": "Three ports, and they do not depend on each other: ask for all at once. "
                "The curve of Brest comes with its table.",
            },
            *calls,
        ),
        message("user", *results),
        message(
            "assistant",
            text(
                "| port | high | level |\n|---|---|---:|\n| Brest | 06:12 | 6.9 m |\n"
                "| Saint-Malo | 08:03 | **12.1 m** |\n\n"
                "The range at Saint-Malo is $h_{\\max} - h_{\\min} = 12.1 - 1.1 = 11\\,\\mathrm{m}$. "
                "For `Atlantis` there is no table."
            ),
        ),
        model="claude-opus-5-5",
        first_token=0.41,
        duration=3.2,
    )
    statuses = ("ok", "ok", "error")
    first.outcomes = [
        ToolOutcome(each, None, text=levels[each["arguments"]["port"]], status=status, duration=seconds)
        for each, status, seconds in zip(calls, statuses, (0.62, 0.71, 0.05), strict=True)
    ]
    second = turn(
        message("user", text("And the wind, hour by hour?")),
        message("assistant", text("I would need a tool for that. Roughly: **west, 4 to 5**, easing in the evening.")),
        model="claude-opus-5-5",
        first_token=0.38,
        duration=1.1,
        usage={**USAGE, "prompt_tokens": 1900, "response_tokens": 44},
    )
    third = turn(
        message("user", text("Plan a sail around the island from that, please.")),
        model="claude-opus-5-5",
        state="failed",
        reason=None,
        error=RestoredError("RateLimitError", "the limit of requests is reached; it says to wait 20 seconds"),
        duration=0.3,
        usage=None,
    )
    chat = conversation([first, second, third], name="Tides")
    chat.split(first, name="with a table of winds")
    other = turn(
        message("user", text("And the wind? As a table.")),
        message("assistant", text("| hour | wind |\n|---|---|\n| 06 | W 4 |\n| 12 | W 5 |\n| 18 | NW 3 |")),
        model="gpt-5.5",
        first_token=0.29,
        duration=1.4,
    )
    chat.turns.append(other)
    chat.checkout("main")
    chat.client.model = "claude-opus-5-5"
    return chat


def chart() -> str:
    """A curve of a tide, as a data URL."""
    import io
    import math

    from matplotlib.figure import Figure

    from mmsp_nb.media import image_url

    figure = Figure(figsize=(4.6, 1.5), dpi=130)
    axes = figure.add_subplot()
    hours = [hour / 4 for hour in range(97)]
    levels = [4.15 + 2.75 * math.cos((hour - 6.2) * math.tau / 12.42) for hour in hours]
    axes.fill_between(hours, levels, color="#4a8bf5", alpha=0.25)
    axes.plot(hours, levels, color="#2563c9")
    axes.set(xlim=(0, 24), ylim=(0, 8), xticks=range(0, 25, 6), ylabel="m", title="Brest")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    return image_url(drawn.getvalue())
