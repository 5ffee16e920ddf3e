"""Speech requests of Google's two chat dialects."""

from __future__ import annotations

import pytest
from provider_helpers import body, image, text, user

from mmsp_nb.protocol.errors import InvalidMessageError, UnsupportedContentError, UnsupportedParameterError

# Speech -----------------------------------------------------------------------------------------------

TWO = [{"voice": "A", "speaker": "Joe"}, {"voice": "B", "speaker": "Ann"}]
NAMED = [{"speaker": "Joe", "voice": "A"}, {"speaker": "Ann", "voice": "B"}]
SCRIPT = [user(text("Joe: hi\nthere\n"), text(" Ann : yo")), user(text("\nJoe:  hi \nthere\n"), text(" Ann : yo"))]


def _voice(name: str) -> dict:
    return {"voice_config": {"prebuilt_voice_config": {"voice_name": name}}}


def test_speech_of_interactions() -> None:
    plain = body("google-official", "gemini-3.1-flash-tts-preview", max_tokens=5, fast_mode=True, thinking_level="high")
    assert plain == {
        "model": "gemini-3.1-flash-tts-preview",
        "stream": True,
        "store": False,
        "service_tier": "priority",
        "response_format": {"type": "audio"},
        "generation_config": {"max_output_tokens": 5, "speech_config": [{"voice": "Kore"}]},
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "hi"}]}],
    }
    two = body("google-official", "gemini-3.8-flash-TTS", SCRIPT, tts_config=TWO)
    assert two["generation_config"] == {"speech_config": NAMED}
    assert two["input"] == [
        {
            "type": "user_input",
            "content": [
                {"type": "text", "text": said, "annotations": [{"type": "speech_metadata", "speaker": speaker}]}
                for speaker, said in (("Joe", "hi\nthere"), ("Ann", "yo"))
            ],
        }
    ]


def test_speech_of_generate_content() -> None:
    one = body("google-genai", "gemini-3.1-flash-tts-preview", tts_config=[{"voice": "Zoe", "speaker": "x"}])
    assert one == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"responseModalities": ["AUDIO"], "speechConfig": _voice("Zoe")},
    }
    two = body("google-genai", "gemini-3.8-flash-tts", SCRIPT, tts_config=TWO)
    assert two["contents"] == [
        {
            "role": "user",
            "parts": [
                {"text": "hi\nthere", "speechMetadata": {"speaker": "Joe"}},
                {"text": "yo", "speechMetadata": {"speaker": "Ann"}},
            ],
        }
    ]
    pairs = [{"speaker": "Joe", **_voice("A")}, {"speaker": "Ann", **_voice("B")}]
    assert two["generationConfig"]["speechConfig"] == {"multi_speaker_voice_config": {"speaker_voice_configs": pairs}}


def test_older_speech_models_get_the_script_as_it_is() -> None:
    found = body("google-official", "gemini-3.1-flash-tts-preview", [user(text("Joe: hi\nAnn: yo"))], tts_config=TWO)
    assert found["input"] == [{"type": "user_input", "content": [{"type": "text", "text": "Joe: hi\nAnn: yo"}]}]


@pytest.mark.parametrize("voices", [[*TWO, TWO[0]], [{"voice": "A"}, {"voice": "B"}]])
@pytest.mark.parametrize("client_type", ["google-official", "google-genai"])
def test_voices_that_cannot_be_are_refused(client_type: str, voices: list) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        body(client_type, "gemini-3.8-flash-tts", tts_config=voices)
    assert caught.value.parameter == "tts_config"


@pytest.mark.parametrize("client_type", ["google-official", "google-genai"])
def test_only_text_can_be_spoken(client_type: str) -> None:
    with pytest.raises(UnsupportedContentError) as caught:
        body(client_type, "gemini-3.8-flash-tts", [user(text("a"), image())])
    assert caught.value.item_type == "image_url"


@pytest.mark.parametrize("client_type", ["google-official", "google-genai"])
def test_script_without_a_speaker_or_a_word_is_refused(client_type: str) -> None:
    with pytest.raises(InvalidMessageError):
        body(client_type, "gemini-3.1-flash-tts-preview", [user(text(""))])
    for script in ("Hello\nJoe: hi", ""):
        with pytest.raises(InvalidMessageError) as caught:
            body(client_type, "gemini-3.8-flash-tts", [user(text(script))], tts_config=TWO)
        assert (caught.value.item_type, caught.value.message_index) == (("text", None) if script else (None, 0))
