"""The tools that come with the package: what they tell, and what they never do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmsp_nb.tools import Policy, Tool, ToolOutcome, ToolRegistry, prepare
from mmsp_nb.tools.builtin import code_tool, file_tools, namespace_tools


def use(tools: list[Tool], name: str, /, **arguments: Any) -> ToolOutcome:
    call = {"type": "tool_call.done", "name": name, "arguments": arguments, "tool_call_id": "1"}
    return prepare(ToolRegistry(*tools), call).run()


def test_variables_are_listed_with_types_and_sizes() -> None:
    pandas = pytest.importorskip("pandas")
    namespace = {
        "frame": pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
        "names": ["Ann"],
        "count": 3,
        "nothing": None,
        "pandas": pandas,
        "_private": 1,
        "OPENAI_API_KEY": "sk-secret",
        "Path": Path,
        "use": use,
    }
    lines = use(namespace_tools(namespace), "variables").text.splitlines()
    assert lines[0].startswith("frame: pandas.DataFrame, 2 rows, 2 columns: a (int64), b (")
    rest = [
        "names: list of length 1",
        "count: int 3",
        "nothing: NoneType None",
        "Path: class Path",
        "use: function use",
    ]
    assert lines[1:] == rest


def test_a_look_is_bounded_current_and_of_names_only() -> None:
    namespace: dict[str, Any] = {"text": "x" * 100_000, "PASSWORD": "p"}
    tools = namespace_tools(namespace)
    assert len(use(tools, "look_at", variable="text").text) < 21_000
    namespace["text"] = "now"
    assert use(tools, "look_at", variable="text").text == "text: str of length 3\nnow"
    for name in ("PASSWORD", "text.upper()", "__builtins__", "nothing"):
        assert use(tools, "look_at", variable=name).status == "error"


def test_a_look_calls_nothing_of_an_object_that_fails() -> None:
    class Trap:
        def __len__(self) -> int:
            raise RuntimeError("no")

        def __repr__(self) -> str:
            raise RuntimeError("no")

    tools = namespace_tools({"trap": Trap()})
    assert "Trap" in use(tools, "variables").text
    assert "cannot be shown" in use(tools, "look_at", variable="trap").text


def test_running_code_always_asks() -> None:
    tool = code_tool(lambda code: eval(code))
    call = {"type": "tool_call.done", "name": "run_code", "arguments": {"code": "1 + 1"}, "tool_call_id": "1"}
    prepared = prepare(ToolRegistry(tool), call)
    generous = Policy(allow="*", decide=lambda name, arguments: "allow", unattended="allow")
    assert generous.judge(prepared).action == "ask" and prepared.run().text == "2" and tool.capture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "notebook"
    (inside / "data").mkdir(parents=True)
    (inside / "data" / "a.csv").write_text("x,y\n1,2\n")
    (inside / "long.txt").write_text("0123456789" * 3_000)
    (inside / "picture.bin").write_bytes(b"\x00\x01" * 10)
    (inside / ".env").write_text("KEY=1")
    (inside / "api_key.txt").write_text("sk-1")
    (tmp_path / "outside.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "outside.txt")
    return inside


def test_files_of_the_folder_are_listed_and_read(folder: Path) -> None:
    tools = file_tools(folder)
    assert use(tools, "list_files", pattern="**/*.csv").result == ["data/a.csv (8 bytes)"]
    assert use(tools, "read_file", path="data/a.csv").text == "x,y\n1,2\n"
    assert use(tools, "read_file", path="picture.bin").text == "(picture.bin is no text: 20 bytes)"
    first = use(tools, "read_file", path="long.txt").text
    assert first.endswith("10,000 of 30,000 characters, from start=20000)")
    assert use(tools, "read_file", path="long.txt", start=29_990).text == "0123456789"


@pytest.mark.parametrize(
    "path",
    ["../outside.txt", "/etc/passwd", "link.txt", ".env", "data/../../outside.txt", "api_key.txt", "data/../.env"],
)
def test_nothing_else_is_read(folder: Path, path: str) -> None:
    outcome = use(file_tools(folder), "read_file", path=path)
    assert outcome.status == "error" and "PermissionError" in outcome.text


@pytest.mark.parametrize("pattern", ["../*", "/etc/*"])
def test_nothing_else_is_listed(folder: Path, pattern: str) -> None:
    tools = file_tools(folder)
    assert use(tools, "list_files", pattern=pattern).status == "error"
    assert not any(name.startswith(".env") for name in use(tools, "list_files", pattern="*").result)
