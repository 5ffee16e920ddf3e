"""``%mmsp models``: search, windows, prices, and which keys are set."""

from __future__ import annotations

from mmsp_nb.notebook.listing import MAX_MODELS, models_page

KEY = "sk-ant-test-not-a-key"


def test_the_list_says_which_keys_are_set_and_never_shows_one() -> None:
    page = models_page("claude-opus-5-5", {"ANTHROPIC_API_KEY": KEY})
    assert "✓ ANTHROPIC_API_KEY" in page.splitlines()[1]
    assert KEY not in page
    assert "needs ANTHROPIC_API_KEY" in models_page("claude-opus-5-5", {"ANTHROPIC_API_KEY": " "})


def test_what_can_be_used_stands_first() -> None:
    lines = models_page("", {"DEEPSEEK_API_KEY": "x"}).splitlines()
    usable = ["✓" in line for line in lines[1 : MAX_MODELS + 1]]
    assert usable[0] and usable == sorted(usable, reverse=True)
    assert lines[-1].startswith("and ")


def test_a_model_of_another_platform_names_the_address_it_needs() -> None:
    line = next(line for line in models_page("openrouter gpt-5.5", {}).splitlines() if "gpt-5.5" in line)
    assert "OPENAI_API_KEY and OPENAI_BASE_URL of OpenRouter" in line
    there = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "https://openrouter.ai/api/v1/"}
    assert "✓ OPENAI_API_KEY" in models_page("openrouter gpt-5.5", there)


def test_prices_are_in_dollars_and_unknown_ones_say_so() -> None:
    line = models_page("claude-opus-5-5 anthropic", {}).splitlines()[1]
    assert line.endswith("4 · 20") and "1M" in line
    assert models_page("tts", {}).splitlines()[1].endswith("unknown")


def test_a_word_without_a_model_suggests_one() -> None:
    assert "did you mean 'claude-opus-5-5'" in models_page("claude-opus-55", {})
