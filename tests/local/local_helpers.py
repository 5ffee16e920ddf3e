"""Requests in every wire format, and a client that sees the bytes as they come."""

import contextlib
import json
import socket
from http.client import HTTPConnection
from urllib.parse import urlsplit

WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather for a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name, e.g. Paris"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
    },
}

WIRES = ["chat", "responses", "messages", "interactions", "generate", "mmsp"]


def request(wire, prompt, *, stream=True, tools=(), model="demo", thinking=False, max_tokens=None):
    """Path and body of a request with one prompt."""
    tools = list(tools)
    if wire == "chat":
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": stream}
        body["stream_options"] = {"include_usage": True}
        if tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in tools]
        if thinking:
            body["reasoning_effort"] = "high"
        if max_tokens:
            body["max_completion_tokens"] = max_tokens
        return "/v1/chat/completions", body
    if wire == "responses":
        body = {"model": model, "input": prompt, "stream": stream, "store": False}
        if tools:
            body["tools"] = [{"type": "function", **tool} for tool in tools]
        if thinking:
            body["reasoning"] = {"effort": "high", "summary": "concise"}
        if max_tokens:
            body["max_output_tokens"] = max_tokens
        return "/v1/responses", body
    if wire == "messages":
        body = {"model": model, "max_tokens": max_tokens or 4096, "stream": stream}
        body["messages"] = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
        if tools:
            names = {"parameters": "input_schema"}
            body["tools"] = [{names.get(key, key): value for key, value in tool.items()} for tool in tools]
        if thinking:
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
        return "/v1/messages", body
    if wire == "interactions":
        step = {"type": "user_input", "content": [{"type": "text", "text": prompt}]}
        body = {"model": model, "input": [step], "stream": stream, "generation_config": {}}
        if tools:
            body["tools"] = [{"type": "function", **tool} for tool in tools]
        if thinking:
            body["generation_config"] = {"thinking_level": "high", "thinking_summaries": "auto"}
        if max_tokens:
            body["generation_config"]["max_output_tokens"] = max_tokens
        return "/v1/interactions", body
    if wire == "generate":
        body = {"contents": [{"role": "user", "parts": [{"text": prompt}]}], "generationConfig": {}}
        if tools:
            body["tools"] = [{"functionDeclarations": tools}]
        if thinking:
            body["generationConfig"]["thinkingConfig"] = {"include_thoughts": True}
        if max_tokens:
            body["generationConfig"]["maxOutputTokens"] = max_tokens
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1/models/{model}:{verb}", body
    item = {"type": "text.done", "text": prompt}
    body = {"model": model, "messages": [{"role": "user", "content_items": [item]}], "config": {"tools": tools}}
    if thinking:
        body["config"]["thinking_level"] = "high"
    if max_tokens:
        body["config"]["max_tokens"] = max_tokens
    return "/v1/stream", body


def post(base_url, path, body, headers=None, timeout=20):
    """Send a request; returns status, headers (lower case) and the body's bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with contextlib.closing(HTTPConnection(urlsplit(base_url).netloc, timeout=timeout)) as connection:
        connection.request("POST", path, content, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, found, response.read()


def get(base_url, path, headers=None):
    """Status and parsed JSON of a GET."""
    with contextlib.closing(HTTPConnection(urlsplit(base_url).netloc, timeout=20)) as connection:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content[:1] in b"{[" else content.decode()


def frames(content):
    """The server-sent events in ``content`` as (event name or None, data text)."""
    found = []
    for block in content.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line]
        if lines:
            name = next((line[7:] for line in lines if line.startswith("event: ")), None)
            found.append((name, "\n".join(line[6:] for line in lines if line.startswith("data: "))))
    return found


def payloads(content):
    """The JSON of each event that has JSON."""
    return [json.loads(data) for _, data in frames(content) if data.startswith("{")]


def ask(base_url, wire, prompt, **options):
    """The stream's bytes for a prompt; the status must be 200."""
    status, headers, content = post(base_url, *request(wire, prompt, **options))
    assert status == 200, content
    assert headers["content-type"].startswith("text/event-stream"), headers
    return content


def raw_connection(base_url):
    """A plain socket to a server."""
    host, port = urlsplit(base_url).netloc.split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def raw_request(path, body, *, close=False):
    """The bytes of a POST."""
    content = json.dumps(body).encode()
    connection = "close" if close else "keep-alive"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\nConnection: {connection}\r\n\r\n"
    return head.encode() + content
