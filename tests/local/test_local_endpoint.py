"""Which model is used without a key, where it is reached, and the command line."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from local_helpers import get, post, request

from mmsp_nb import local
from mmsp_nb.local import __main__ as command
from mmsp_nb.local.errors import LocalModelError
from mmsp_nb.protocol.errors import MMSPError


@pytest.mark.parametrize(
    ("client_type", "suffix"),
    [
        ("openai-chat", "/v1"),
        ("openai-official", "/v1"),
        ("openai", "/v1"),
        ("deepseek-official", "/v1"),
        ("zai-official", "/v1"),
        ("openai-embedding", "/v1"),
        ("mmsp", "/v1"),
        (None, "/v1"),
        ("anthropic-official", ""),
        ("ant-messages", ""),
        ("google-official", ""),
        ("Google-GenAI", ""),
        ("gemini-official", ""),
    ],
)
def test_the_base_url_suits_the_client_type(fresh_local, client_type, suffix):
    found = local.endpoint("demo", client_type)
    assert found.base_url.startswith("http://127.0.0.1:")
    assert found.base_url.count("/v1") == (suffix == "/v1")
    assert (found.model, found.api_key) == ("demo", "demo")
    assert "api_key" not in repr(found)


def test_variants_of_the_demo_share_its_server(fresh_local):
    first, second = local.endpoint("demo"), local.endpoint("demo:thinking")
    assert (first.base_url, second.model) == (second.base_url, "demo:thinking")


def test_many_threads_start_one_server(fresh_local):
    barrier, found = threading.Barrier(8), []

    def get_one():
        barrier.wait(5)
        found.append(local.endpoint("demo").base_url)

    threads = [threading.Thread(target=get_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_it_starts_again_after_a_shutdown(fresh_local):
    local.endpoint("demo")
    local.shutdown()
    url = local.endpoint("demo", "anthropic-official").base_url
    assert get(url, "/health")[0] == 200


@pytest.mark.parametrize("model", ["gpt-5.5", "demon", "", "local:x"])
def test_other_ids_are_not_local(model):
    assert not local.is_local(model)
    with pytest.raises(ValueError, match="no local model"):
        local.endpoint(model)


def test_the_delay_can_be_set_from_outside(fresh_local, monkeypatch):
    monkeypatch.setenv("MMSP_DEMO_DELAY", "0.25")
    local.endpoint("demo")
    assert local._running.demo.mind.delay == 0.25
    local.shutdown()
    monkeypatch.setenv("MMSP_DEMO_DELAY", "soon")
    local.endpoint("demo")
    assert local._running.demo.mind.delay == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_a_server_of_its_own(fresh_local):
    code = """
import os, sys, urllib.request
from mmsp_nb import local
first = local.endpoint("demo", "google-genai").base_url
child = os.fork()
if child == 0:
    second = local.endpoint("demo", "google-genai").base_url
    assert second != first, second
    assert urllib.request.urlopen(second + "/health", timeout=5).status == 200
    os._exit(7)
_, status = os.waitpid(child, 0)
assert urllib.request.urlopen(first + "/health", timeout=5).status == 200
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=30, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr


def test_importing_it_is_light():
    code = (
        "import sys; import mmsp_nb.local as l; l.choose({'MMSP_MODEL': 'x'}); "
        "print(*[m for m in ('http.server', 'socket', 'httpx', 'subprocess', 'platformdirs') if m in sys.modules])"
    )
    # measuring coverage would load modules of its own
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("environ", "model", "client_type"),
    [
        ({"OPENAI_API_KEY": "k"}, "gpt-5.5", "openai-official"),
        ({"ANTHROPIC_API_KEY": "k"}, "claude-opus-5-5", "anthropic-official"),
        ({"GEMINI_API_KEY": "k"}, "gemini-3.8-flash", "google-official"),
        ({"DEEPSEEK_API_KEY": "k"}, "deepseek-flash", "deepseek-official"),
        ({"ZAI_API_KEY": "k"}, "glm-5.3", "zai-official"),
        ({"MOONSHOT_API_KEY": "k"}, "kimi-k3", "moonshot-official"),
        ({"MINIMAX_API_KEY": "k"}, "MiniMax-M3", "minimax-official"),
        ({"MINIMAX_API_KEY": "k", "OPENAI_API_KEY": " "}, "MiniMax-M3", "minimax-official"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "gpt-5.5", "openai-official"),
        ({"MMSP_MODEL": "kimi-k3", "OPENAI_API_KEY": "k"}, "kimi-k3", None),
        ({"MMSP_MODEL": "qwen", "CLIENT_TYPE": "openai-chat"}, "qwen", "openai-chat"),
        ({"MMSP_MODEL": "demo", "OPENAI_API_KEY": "k"}, "demo", "openai-chat"),
        ({"MMSP_MODEL": "local"}, "local", "openai-chat"),
    ],
)
def test_what_the_environment_chooses(environ, model, client_type):
    choice = local.choose(environ)
    assert (choice.model, choice.client_type) == (model, client_type)
    assert choice.why.split()[0] in environ
    assert "k" not in choice.why.split()


@pytest.mark.parametrize(("ready", "model"), [(True, "local"), (False, "demo")])
def test_without_a_key_a_local_model_is_chosen(monkeypatch, ready, model):
    monkeypatch.setattr(local, "_local_ready", lambda: ready)
    choice = local.choose({"OPENAI_API_KEY": ""})
    assert (choice.model, choice.client_type) == (model, "openai-chat")


def test_the_defaults_are_models_and_client_types_that_exist():
    from mmsp_nb.providers.routing import family
    from mmsp_nb.providers.vendors import VENDORS

    for variable, (model, client_type) in local.VENDOR_DEFAULTS.items():
        assert family(model) == client_type
        assert VENDORS[client_type].api_key_env == variable


def test_every_client_type_has_the_base_it_expects():
    """A request's path is appended to the base URL: together they must lead to a path that is served."""
    from mmsp_nb.local import wire
    from mmsp_nb.providers.vendors import VENDORS

    for name, vendor in VENDORS.items():
        if "embedding" in name:
            continue
        from importlib import import_module

        dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
        message = {"role": "user", "content_items": [{"type": "text.done", "text": "hi"}]}
        [built] = dialect.build(vendor, "demo", [message], {})
        suffix = "" if name in local._ROOTED else "/v1"
        assert wire.target("POST", (suffix + built.path).partition("?")[0], {}) is not None, name


def test_errors_are_of_the_packages_tree():
    assert issubclass(LocalModelError, MMSPError)
    assert local.LocalModelError is LocalModelError
    with pytest.raises(AttributeError):
        _ = local.nonsense


def test_available_names_the_demo(monkeypatch):
    monkeypatch.setattr(local, "_local_ready", lambda: False)
    assert list(local.available()) == ["demo"]


@pytest.fixture
def served():
    """Start `python -m mmsp_nb.local` with arguments and read its first lines; it is ended afterwards."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "mmsp_nb.local", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_the_command_serves_the_demo_and_prints_what_to_set(served):
    process = served("demo", "--delay", "0")
    url = process.stdout.readline().split()[4]
    lines = [process.stdout.readline() for _ in range(5)]
    assert f"export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=demo\n" in lines
    assert f"export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=demo\n" in lines
    assert post(url, *request("chat", "hi"))[0] == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_the_command_reports_a_taken_port(served, demo):
    process = served("demo", "--port", demo.rpartition(":")[2])
    _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert error.startswith("cannot listen on port")


def test_status_says_what_is_there_and_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("mmsp_nb.local.weights.cache_dir", lambda: tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert command.main(["status"]) == 0
    shown = capsys.readouterr().out
    assert 'missing: pip install "mmsp-nb[local]"' in shown
    assert "missing: python -m mmsp_nb.local fetch" in shown
    assert "default demo" in shown


def test_errors_of_the_command_are_one_line(capsys, monkeypatch):
    monkeypatch.setenv("MMSP_LOCAL_GGUF", "/no/such/file.gguf")
    assert command.main(["fetch"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "MMSP_LOCAL_GGUF" in error


def test_the_help_lists_the_orders(capsys):
    with pytest.raises(SystemExit):
        command.main(["demo", "--help"])
    assert "demo: error after 200" in capsys.readouterr().out


def test_lines_to_paste_are_shell_and_complete():
    lines = command.environment("http://127.0.0.1:1", "key", "model")
    assert [line.split()[0] for line in lines] == ["export"] * 4
    assert json.dumps(lines).count("http://127.0.0.1:1") == 3
