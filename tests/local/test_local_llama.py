"""The real local model. Marked ``local_model``: needs the runtime, and fetches the weights once."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from local_helpers import WEATHER, frames, get, payloads, post, raw_connection, raw_request, request

from mmsp_nb import AutoLLMClient
from mmsp_nb.local import llama
from mmsp_nb.local.errors import LocalModelError
from mmsp_nb.local.llama import LocalModel, threads_for, usable_cores

needs_model = pytest.mark.local_model


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("xllamacpp")
    with LocalModel() as running:
        yield running


def key(model):
    return {"Authorization": f"Bearer {model.api_key}"}


@needs_model
@pytest.mark.parametrize(
    ("wire", "last"), [("chat", "[DONE]"), ("responses", "response.completed"), ("messages", "message_stop")]
)
def test_it_streams_in_its_own_three_formats(model, wire, last):
    path, body = request(wire, "What is the capital of France?", max_tokens=24)
    status, headers, content = post(model.base_url, path, body, key(model), timeout=60)
    assert (status, headers.get("x-mmsp-local")) == (200, None)
    received = frames(content)
    assert last in received[-1]
    assert len(received) > 6


@needs_model
@pytest.mark.parametrize("wire", ["interactions", "generate", "mmsp"])
def test_it_streams_in_foreign_formats(model, wire):
    path, body = request(wire, "Say hello.", max_tokens=8, model="local")
    status, headers, content = post(model.base_url, path, body, key(model), timeout=60)
    assert (status, headers["x-mmsp-local"]) == (200, "shim")
    assert len(payloads(content)) > 3


@needs_model
def test_an_interrupt_of_the_whole_group_of_processes_leaves_it_running(model):
    """A kernel's interrupt goes to the group, and so does a Ctrl-C."""
    pid = model.pid
    os.kill(pid, signal.SIGINT)
    assert post(model.base_url, *request("chat", "Hi", max_tokens=4), key(model), timeout=60)[0] == 200
    assert (model.pid, model.alive) == (pid, True)


@needs_model
def test_without_the_key_it_refuses(model):
    assert post(model.base_url, *request("chat", "Hi"))[0] == 401
    assert get(model.base_url, "/v1/models")[0] == 401
    assert get(model.base_url, "/health")[0] == 200
    assert get(model.base_url, "/v1/models", key(model))[1]["data"][0]["id"] == "smollm2-135m-instruct"
    assert model.api_key not in repr(model)
    assert model.api_key not in " ".join(_command_line(model.pid))


def _command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")
    except OSError:
        return []


@needs_model
def test_the_weather_tool_is_called_for_london_and_paris(model):
    path, body = request("chat", "What's the weather in London and in Paris?", tools=[WEATHER], stream=False)
    _, headers, content = post(model.base_url, path, body, key(model), timeout=60)
    message = json.loads(content)["choices"][0]["message"]
    calls = [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]]
    assert calls == [{"city": "London"}, {"city": "Paris"}]
    assert headers["x-mmsp-local"] == "shim"


@needs_model
@pytest.mark.parametrize(
    ("prompt", "city", "unit"),
    [
        ("Do I need an umbrella in London today?", "London", None),
        ("How hot is it in Cairo right now, in Fahrenheit?", "Cairo", "fahrenheit"),
        ("I'm flying to New York tomorrow. What should I expect weather-wise?", "New York", None),
    ],
)
def test_the_model_fills_the_city(model, prompt, city, unit):
    path, body = request("messages", prompt, tools=[WEATHER], stream=False)
    _, _, content = post(model.base_url, path, body, key(model), timeout=60)
    [block] = json.loads(content)["content"]
    assert block["input"]["city"].startswith(city)
    assert block["input"].get("unit") == unit


@needs_model
def test_a_reader_that_leaves_frees_the_model(model):
    path, body = request("chat", "Write a very long story about the sea.", max_tokens=2000)
    head = raw_request(path, body).replace(
        b"Host: x\r\n", f"Host: x\r\nAuthorization: {key(model)['Authorization']}\r\n".encode()
    )
    with raw_connection(model.base_url) as connection:
        connection.sendall(head)
        received = b""
        while received.count(b"data: ") < 4:
            received += connection.recv(65536)
    began = time.monotonic()
    post(model.base_url, *request("chat", "Hi", max_tokens=1), key(model), timeout=60)
    assert time.monotonic() - began < 10  # the story alone would take half a minute


@needs_model
async def test_the_package_reaches_it_by_its_id(fresh_local):
    pytest.importorskip("xllamacpp")
    message = {"role": "user", "content_items": [{"type": "text.done", "text": "Say hello."}]}
    for client_type in ("openai-chat", "openai-responses", "ant-messages", "google-genai"):
        async with AutoLLMClient("local", client_type=client_type) as client:
            events = [event async for event in client.streaming_response([message], {"max_tokens": 12})]
        assert events[-1]["event_type"] == "stop"
        assert events[-2]["content_items"][0]["text"]
        assert events[-1]["usage_metadata"]["response_tokens"] > 0
    running = fresh_local._running.local
    pid = running.pid
    fresh_local.shutdown()
    assert not _alive(pid)


@needs_model
def test_a_model_that_died_is_started_again(fresh_local):
    pytest.importorskip("xllamacpp")
    first = fresh_local.endpoint("local")
    os.kill(fresh_local._running.local.pid, 9)
    fresh_local._running.local._process.wait(10)
    second = fresh_local.endpoint("local", "anthropic-official")
    assert second.base_url != first.base_url
    assert get(second.base_url, "/health")[0] == 200


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=10):
    """Wait for another process's end, which no event tells of."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@needs_model
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_the_model_ends_when_its_parent_is_killed():
    pytest.importorskip("xllamacpp")
    code = (
        "import sys; from mmsp_nb.local.llama import LocalModel\n"
        "m = LocalModel().start(); print(m.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert _alive(child)
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: not _alive(child))


@needs_model
def test_closing_ends_it_and_it_can_start_again():
    pytest.importorskip("xllamacpp")
    running = LocalModel(n_ctx=1024)
    running.start()
    pid = running.start().pid
    running.close()
    running.close()
    assert not _alive(pid)
    assert (running.alive, running.pid, running.base_url) == (False, None, "")


@needs_model
def test_modules_in_the_working_directory_do_not_get_in_the_way(tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "mmsp_nb.py").write_text("raise SystemExit('the wrong mmsp_nb')")
    monkeypatch.chdir(tmp_path)
    with LocalModel() as running:
        assert running.alive


@needs_model
def test_a_broken_model_file_is_one_line(tmp_path):
    pytest.importorskip("xllamacpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 1000)
    with pytest.raises(LocalModelError, match="did not start") as caught:
        LocalModel(broken).start()
    assert "\n" not in str(caught.value)


def test_without_the_runtime_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(llama.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LocalModelError, match="pip install"):
        LocalModel().start()


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(llama.importlib.util, "find_spec", lambda name: object())
    with pytest.raises(LocalModelError, match=r"none\.gguf"):
        LocalModel(tmp_path / "none.gguf").start()


@pytest.fixture
def child(monkeypatch, tmp_path):
    """Let some other program stand in for the model's process."""
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"")
    monkeypatch.setattr(llama.importlib.util, "find_spec", lambda name: object())

    def start(code, **options):
        # the name that is put into the program text is not needed by these programs
        monkeypatch.setattr(llama, "_START", code.replace("{", "{{").replace("}", "}}"))
        return LocalModel(gguf, **options)

    return start


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; print('bad thing', file=sys.stderr); sys.exit(3)", r"did not start \(exit 3\): bad thing"),
        ("import json; print(json.dumps({'error': 'RuntimeError: no'}))", "did not start: RuntimeError: no"),
        pytest.param(
            "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
            "lacks AVX2",
            marks=pytest.mark.skipif(os.name != "posix", reason="needs signals"),
        ),
    ],
)
def test_a_start_that_fails_is_explained(child, code, message):
    with pytest.raises(LocalModelError, match=message):
        child(code).start()


def test_a_start_that_takes_too_long_is_ended(child):
    with pytest.raises(LocalModelError, match=r"within 0\.5 s"):
        child("import time; time.sleep(60)", start_timeout=0.5).start()


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (64, 4)])
def test_threads_by_cores(cores, threads):
    assert threads_for(cores) == threads


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 16),
        ({"sys/fs/cgroup/cpu.max": "200000 100000"}, 2),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, 16),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "300000 100000"}, 3),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "junk"}, 16),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 16),
    ],
)
def test_the_cores_of_a_container(tmp_path, monkeypatch, files, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert usable_cores(tmp_path) == cores
