"""The same loop for every provider: only the model's name changes, the endpoint comes from the environment."""

from __future__ import annotations

from typing import Any

import pytest

from mmsp_nb import Agent, AutoLLMClient
from mmsp_nb.local import DemoServer

WEATHER = {"London": "14 °C, rain", "Paris": "21 °C, sunny"}

MODELS = [
    # model, client type (None: the model's name tells), the vendor's prefix of variables, path below the server's root
    ("gpt-5.5", None, "OPENAI", "/v1"),
    ("claude-opus-5-5", None, "ANTHROPIC", ""),
    ("gemini-3.8-flash", None, "GEMINI", ""),
    ("deepseek-flash", None, "DEEPSEEK", "/v1"),
    ("kimi-k3", None, "MOONSHOT", "/v1"),
    ("some-model", "openai-chat", "OPENAI", "/v1"),
    ("some-model", "openai-responses", "OPENAI", "/v1"),
    ("some-model", "ant-messages", "ANTHROPIC", ""),
    ("gemini-3.8-flash", "google-genai", "GEMINI", ""),
]


async def run(client: AutoLLMClient, question: str, tools: list[Any]) -> tuple[str, list[dict[str, Any]]]:
    text, results = "", []
    async for event in Agent(client, tools).run(question):
        if event["type"] == "tool_end":
            results.append(event["outcome"].item())
        elif event["type"] == "end":
            text = event["text"]
    return text, results


@pytest.mark.parametrize(("model", "client_type", "prefix", "path"), MODELS)
async def test_only_the_model_id_changes(
    monkeypatch: pytest.MonkeyPatch, model: str, client_type: str | None, prefix: str, path: str
) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """The weather in a city right now."""
        asked.append(city)
        return WEATHER[city]

    with DemoServer() as server:
        monkeypatch.setenv(f"{prefix}_BASE_URL", server.base_url + path)
        monkeypatch.setenv(f"{prefix}_API_KEY", "not-a-real-key")
        client = AutoLLMClient(model, client_type=client_type)
        text, results = await run(client, "What's the weather in London and in Paris?", [get_weather])
        assert asked == ["London", "Paris"]
        assert [result["text"] for result in results] == ["14 °C, rain", "21 °C, sunny"]
        assert "14 °C, rain" in text and "21 °C, sunny" in text
        follow_up, none = await run(client, "Which of the two is warmer?", [get_weather])
        assert "Paris" in follow_up and none == []
        history = client.get_history()
        items = [[item["type"] for item in message["content_items"]] for message in history]
        # some vendors put a signature before their calls, as thinking without words
        kinds = [[kind for kind in types if kind != "thinking.done"] for types in items]
        assert kinds == [
            ["text.done"],
            ["tool_call.done", "tool_call.done"],
            ["tool_result.done", "tool_result.done"],
            ["text.done"],
            ["text.done"],
            ["text.done"],
        ]
        await client.aclose()
