"""Nothing that was answered is lost or asked twice: interrupts, killed processes, damaged files, full disks."""

from __future__ import annotations

import _thread
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from echoes import Echo, refusal

import mmsp_nb
from mmsp_nb.mapping import unfinished
from mmsp_nb.mapping.journal import Journal, memory
from mmsp_nb.testing import Reply, parts, wire

ROWS = [f"row {i}" for i in range(60)]


def interrupting(echo: Echo, after: int) -> None:
    """A Ctrl-C when so many rows have been asked."""
    done = threading.Event()

    def rule(prompt: str) -> Any:
        if len(echo.order) == after and not done.is_set():
            done.set()
            _thread.interrupt_main()

    echo.rules.append(rule)


def test_after_an_interrupt_the_same_call_asks_only_the_others(echo: Echo, capsys):
    interrupting(echo, 20)
    with pytest.raises(KeyboardInterrupt):
        mmsp_nb.map(ROWS, client=echo.client(), concurrency=3)
    partial = unfinished()
    had = [value for value in partial if not isinstance(value, mmsp_nb.MapError)]
    assert 15 <= len(had) < 60
    assert f"stopped: {len(had)} of 60 rows are answered" in capsys.readouterr().err
    assert isinstance(partial[59].error, mmsp_nb.NotAskedError) and not partial.ok
    result = mmsp_nb.map(ROWS, client=echo.client(), concurrency=3)
    assert list(result) == [f"<{row}>" for row in ROWS] and unfinished() is None
    for value in had:
        assert echo.asked[value[1:-1]] == 1, "what was answered is not asked again"
    asked = sum(echo.asked.values())
    assert 60 <= asked <= 63, "only what was on its way is asked twice"
    mmsp_nb.map(ROWS, client=echo.client())
    assert sum(echo.asked.values()) == asked + 60, "a run that came to its end is over"


def test_the_unfinished_result_itself_goes_on_too(echo: Echo):
    interrupting(echo, 20)
    with pytest.raises(KeyboardInterrupt):
        mmsp_nb.map((row for row in ROWS), client=echo.client(), concurrency=3)
    partial = unfinished()
    had = [value for value in partial if not isinstance(value, mmsp_nb.MapError)]
    assert partial.retry().ok
    # a row that the interrupt took from the generator is in it, and those that were never drawn are asked now
    assert list(partial) == [f"<{row}>" for row in ROWS]
    assert all(echo.asked[value[1:-1]] == 1 for value in had) and len(echo.order) <= 63


async def test_a_cancelled_task_is_resumed_in_the_same_way(echo: Echo):
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def rule(prompt: str) -> Any:
        if len(echo.order) == 20:
            loop.call_soon_threadsafe(reached.set)

    echo.rules.append(rule)
    task = asyncio.ensure_future(mmsp_nb.amap(ROWS, client=echo.client(), concurrency=3))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    had = [value for value in unfinished() if not isinstance(value, mmsp_nb.MapError)]
    assert had
    result = await mmsp_nb.amap(ROWS, client=echo.client())
    assert result.ok and all(echo.asked[value[1:-1]] == 1 for value in had)


def test_what_is_asked_otherwise_is_asked_anew(echo: Echo):
    interrupting(echo, 20)
    with pytest.raises(KeyboardInterrupt):
        mmsp_nb.map(ROWS, client=echo.client(), concurrency=3)
    for more in ({"system": "Other."}, {"config": {"max_tokens": 5}}, {"resume": False}):
        before = len(echo.order)
        mmsp_nb.map(ROWS[:10], client=echo.client(), **more)
        # a row of the run that was interrupted may still be on its way
        assert sorted(row for row in echo.order[before:] if row in ROWS[:10]) == sorted(ROWS[:10])


def test_rows_that_failed_are_the_only_ones_asked_by_the_same_call(echo: Echo):
    bad = [True]
    echo.rules.append(lambda prompt: refusal(400) if prompt == "row 7" and bad[0] else None)
    assert len(mmsp_nb.map(ROWS, client=echo.client()).errors) == 1
    bad[0] = False
    assert mmsp_nb.map(ROWS, client=echo.client()).ok
    assert len(echo.order) == 61


def test_a_checkpoint_serves_rows_that_were_moved_added_and_doubled(echo: Echo, tmp_path: Path):
    where = tmp_path / "kept.jsonl"
    mmsp_nb.map(["a", "b", "a"], client=echo.client(), checkpoint=where)
    result = mmsp_nb.map(["c", "b", "a", "a", "a"], client=echo.client(), checkpoint=str(where))
    assert list(result) == ["<c>", "<b>", "<a>", "<a>", "<a>"]
    assert echo.asked == {"a": 3, "b": 1, "c": 1}
    assert result.usage["prompt_tokens"] == 35 and str(result.answers[1]) == "<b>"
    lines = [json.loads(line) for line in where.read_text().splitlines()]
    assert lines[0]["format"] == "mmsp_nb rows" and len(lines) == 6
    assert where.stat().st_mode & 0o077 == 0


def test_half_an_emoji_in_a_row_or_an_answer_is_kept_like_any_text(echo: Echo, tmp_path: Path):
    def keep(word: str) -> str:
        """Keep a word."""
        return word

    def rule(prompt: str) -> Any:
        call = parts.call("keep", '{"word": "half \\ud83d"}', id=f"c{len(echo.order)}")
        return Reply.stream(wire.chat.frames([call if prompt.startswith("call") else parts.text("fine")]))

    echo.rules.append(rule)
    for _ in range(2):
        result = mmsp_nb.map(
            ["half \ud83d", "call \udc80"], client=echo.client(), tools=[keep], checkpoint=tmp_path / "a.jsonl"
        )
        assert list(result) == ["fine", "fine"]
    assert len(echo.order) == 3, "the second time nothing is asked"


def test_what_was_remembered_goes_into_a_checkpoint_that_is_named_later(echo: Echo, tmp_path: Path):
    interrupting(echo, 20)
    with pytest.raises(KeyboardInterrupt):
        mmsp_nb.map(ROWS, client=echo.client(), concurrency=3)
    mmsp_nb.map(ROWS, client=echo.client(), checkpoint=tmp_path / "kept")
    memory.clear()
    before = len(echo.order)
    assert mmsp_nb.map(ROWS, client=echo.client(), checkpoint=tmp_path / "kept").ok
    assert len(echo.order) == before


CHILD = """
import sys, mmsp_nb
client = mmsp_nb.AutoLLMClient("any", "key", sys.argv[1], "openai-chat")
result = mmsp_nb.map([f"row {i}" for i in range(60)], client=client, checkpoint=sys.argv[2], concurrency=2)
print(result.ok, len(result))
"""


def child(echo: Echo, where: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, echo.provider.url("/v1"), str(where)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_process_that_is_killed_loses_nothing_that_was_answered(echo: Echo, tmp_path: Path):
    where = tmp_path / "kept.jsonl"
    running = child(echo, where)
    echo.provider.wait_for_requests(25, timeout=60)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    echo.provider.wait_until_idle()
    kept = len(where.read_text().splitlines()) - 1
    assert kept >= 22  # all but the two that were on their way, and one that had come and was not written yet
    out, _ = child(echo, where).communicate(timeout=60)
    assert out == "True 60\n"
    assert sum(echo.asked.values()) <= 63
    assert sorted(echo.asked) == sorted(ROWS)


def test_a_line_that_was_cut_is_left_out_with_a_word_where_and_the_rest_is_used(echo: Echo, tmp_path: Path):
    where = tmp_path / "kept.jsonl"
    mmsp_nb.map(ROWS[:5], client=echo.client(), checkpoint=where)
    data = where.read_bytes()
    where.write_bytes(data[:-20])
    with pytest.warns(RuntimeWarning, match=r"kept.jsonl, line 6: damaged, and left out"):
        result = mmsp_nb.map(ROWS[:5], client=echo.client(), checkpoint=where)
    assert result.ok and len(echo.order) == 6
    with pytest.warns(RuntimeWarning, match="line 6"):
        assert len(Journal(where)) == 5, "what came after the cut line stands on a line of its own"


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"key": ["a"]}', b'{"key": 5}', b"5", b"\xff\xfe"])
def test_a_line_that_is_no_record_is_left_out_with_a_warning(echo: Echo, tmp_path: Path, line: bytes):
    where = tmp_path / "kept"
    mmsp_nb.map(ROWS[:3], client=echo.client(), checkpoint=where)
    where.write_bytes(where.read_bytes() + line + b"\n")
    asked = len(echo.order)
    with pytest.warns(RuntimeWarning, match="line 5: damaged, and left out") as warned:
        assert mmsp_nb.map(ROWS[:3], client=echo.client(), checkpoint=where).ok
    assert len(echo.order) == asked
    assert warned[0].filename == __file__, "it names the line that called map()"


@pytest.mark.parametrize("where", [5, True, ["a"]])
def test_a_checkpoint_that_is_no_path_is_named(echo: Echo, where):
    with pytest.raises(TypeError, match=r"checkpoint is the path of a file such as 'answers\.jsonl', not"):
        mmsp_nb.map(ROWS[:1], client=echo.client(), checkpoint=where)


def test_a_checkpoint_in_a_folder_that_is_not_there_names_the_folder(echo: Echo, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"checkpoint cannot be made: there is no such folder.*nowhere"):
        mmsp_nb.map(ROWS[:1], client=echo.client(), checkpoint=tmp_path / "nowhere" / "kept")


def test_a_file_that_is_no_checkpoint_is_left_as_it_is(echo: Echo, tmp_path: Path):
    where = tmp_path / "data.jsonl"
    for content in ('{"text": "mine"}\n', "not json at all", '{"format": "mmsp_nb rows", "version": 9}\n'):
        where.write_text(content)
        with pytest.raises(ValueError, match="name another file"):
            mmsp_nb.map(ROWS, client=echo.client(), checkpoint=where)
        assert where.read_text() == content
    with pytest.raises(OSError):
        mmsp_nb.map(ROWS, client=echo.client(), checkpoint=tmp_path / "no folder" / "x")
    assert not echo.order


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_warned_of_once_and_the_answers_are_there(echo: Echo, tmp_path: Path, monkeypatch):
    original = os.write

    def write(file: int, data: bytes) -> int:
        if b'"row 1' in data or b"<row 1" in data:
            raise OSError(28, "No space left on device")
        return original(file, data)

    monkeypatch.setattr(os, "write", write)
    where = tmp_path / "kept.jsonl"
    with pytest.warns(RuntimeWarning, match="cannot be written") as warned:
        result = mmsp_nb.map(ROWS[:20], client=echo.client(), checkpoint=where)
    assert result.ok and len(warned) == 1
    monkeypatch.undo()
    assert mmsp_nb.map(ROWS[:20], client=echo.client(), checkpoint=where).ok
    assert len(echo.order) == 20 + 11, "rows 1 and 10 to 19 are asked again"


def test_a_key_in_an_answer_does_not_get_into_the_file(echo: Echo, tmp_path: Path, monkeypatch):
    key = "sk-proj-aB3dE5gH7jK9mN1pQ3s"
    monkeypatch.setenv("SOME_API_KEY", "plain-secret-value")
    rows, kept = [f"x {key}", "plain-secret-value"], tmp_path / "kept"
    result = mmsp_nb.map(rows, client=echo.client(), checkpoint=kept, mask_keys=False)
    assert result[0] == f"<x {key}>"
    written = (tmp_path / "kept").read_text()
    assert key not in written and "plain-secret-value" not in written
    assert key not in repr(result) + result._repr_html_()


def test_a_cassette_answers_all_rows_again_without_a_provider(echo: Echo, tmp_path: Path):
    options = {"model": "any", "api_key": "key", "base_url": echo.provider.url("/v1"), "client_type": "openai-chat"}
    first = mmsp_nb.map(ROWS[:10], cassette=tmp_path / "tape.jsonl", **options)
    again = mmsp_nb.map(ROWS[:10], cassette=tmp_path / "tape.jsonl", **options)
    assert list(first) == list(again) == [f"<{row}>" for row in ROWS[:10]] and len(echo.order) == 10
