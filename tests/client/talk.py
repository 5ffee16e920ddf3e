"""What the client tests share."""

CLIENTS = {
    "chat": ("openai-chat", "/v1"),
    "messages": ("ant-messages", ""),
    "responses": ("openai-responses", "/v1"),
    "interactions": ("google-official", ""),
    "generate_content": ("google-genai", ""),
    "mmsp": ("mmsp", "/v1"),
}
"""Dialect -> a client type that speaks it, and the path below the provider's address."""


def user(text, **more):
    return {"role": "user", "content_items": [{"type": "text.done", "text": text}], **more}


def text_of(event):
    """What a delta event adds to the text, else None."""
    items = event["content_items"]
    return items[0]["text"] if items and items[0]["type"] == "text.delta" else None


def kinds(events):
    """The item types of events, repeats left out; ``stop`` for the stop."""
    names = [event["content_items"][0]["type"] if event["content_items"] else event["event_type"] for event in events]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


async def collect(stream, into=None):
    events = [] if into is None else into
    async for event in stream:
        events.append(event)
    return events
