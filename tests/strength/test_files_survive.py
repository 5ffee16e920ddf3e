"""A full disk, a folder that may not be written, a process that is killed: at most the last record is lost."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from mmsp_nb import Conversation, load, tracing
from mmsp_nb.atomic import NotWrittenError
from mmsp_nb.testing import streams
from mmsp_nb.transport.cassette import Cassette

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and users of a Unix")
WRITER = Path(__file__).with_name("writer.py")
KINDS = ["save", "trace", "cassette"]
KILLS = 8


def mounted(where: Path) -> bool:
    """Mount a disk of 64 kB, if this machine lets us."""
    mount = shutil.which("mount")
    command = [mount, "-t", "tmpfs", "-o", "size=64k", "none", str(where)]
    return mount is not None and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        if not mounted(Path(folder)):
            return False
        subprocess.run(["umount", folder], check=True)
        return True


ORDINARY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
"""Runs a command for which the permissions of files hold, though it is root's."""


def started(kind: str, folder: Path, *options: str, through: Sequence[str] = ()) -> subprocess.Popen[str]:
    command = [*through, sys.executable, str(WRITER), kind, str(folder), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(kind: str, folder: Path, *options: str, through: Sequence[str] = ()) -> list[str]:
    child = started(kind, folder, *options, through=through)
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 0, out
    return out.splitlines()


def last_number(kind: str, folder: Path) -> int:
    """The number of the latest record that can be read; whatever is not whole fails or is left out by name."""
    if kind == "save":
        return int(load(folder / "talk.jsonl").turns[0].prompt) if (folder / "talk.jsonl").exists() else 0
    if kind == "trace":
        if not (folder / "talk.json").exists():
            return 0
        assert load(folder / "talk.json").turns[0].text.endswith("x")
        return int(tracing.load(folder / "talk.json")[0]["content_items"][0]["text"])
    if not (folder / "talk.jsonl").exists():
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the last answer is left out
        return len(Cassette(folder / "talk.jsonl", "new"))


# a process that is killed


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_is_killed_loses_its_last_record_at_most(kind, tmp_path):
    dice = random.Random(kind)
    before = 0
    for _ in range(KILLS):
        child = started(kind, tmp_path)
        assert child.stdout is not None
        try:
            lines = [child.stdout.readline() for _ in range(dice.randint(2, 30))]
            for _ in range(dice.randint(0, 30_000)):  # somewhere in the next record
                pass
        finally:
            child.kill()
        lines += child.stdout.readlines()
        child.wait(timeout=30)
        told = [int(line[6:]) for line in lines if line.startswith("wrote ") and line.endswith("\n")]
        assert told, lines
        found = last_number(kind, tmp_path)
        # of a recording, what an earlier process has recorded is answered, and nothing is lost
        least = max(told) if kind != "cassette" else max(before, max(told))
        assert least <= found <= max(before, max(told) + 1)
        before = found if kind == "cassette" else 0


# a full disk


@pytest.fixture
def disk(tmp_path):
    """A disk of 64 kB."""
    where = tmp_path / "disk"
    where.mkdir()
    assert mounted(where)
    try:
        yield where
    finally:
        subprocess.run(["umount", where], check=True)


DISKS = ["disk"] if can_mount() else []


@pytest.fixture(params=["limit", *DISKS])
def small(request, tmp_path):
    """A folder where a file may have 64 kB, and the options for the writer."""
    if request.param == "limit":
        return tmp_path, ["--limit", "65536"]
    return request.getfixturevalue("disk"), []


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_keeps_what_was_written_before(kind, small):
    folder, options = small
    filler = folder / "filler"
    assert run(kind, folder, *options, "--times", "1") == ["wrote 1"]
    if options:
        # files grow until one meets the limit
        lines = run(kind, folder, "--limit", "8192", "--times", "3")
    else:
        with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as out:
            while out.write(b"f" * 512):
                pass
        lines = run(kind, folder, "--times", "3")
    assert last_number(kind, folder) == 1
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == [], "nothing is left over"
    if kind == "cassette":
        # number 1 is answered from the file; the others are answered all the same, and are not recorded
        assert [line for line in lines if line.startswith("wrote")] == ["wrote 1", "wrote 2", "wrote 3"]
        told = [line for line in lines if line.startswith("warning")]
        assert len(told) >= 1 and all("talk.jsonl: this was not recorded: " in line for line in told)
    else:
        assert len(lines) == 3
        assert all(line.startswith("failed NotWrittenError ") for line in lines)
        assert all("What was there before is unchanged" in line for line in lines)
    filler.unlink(missing_ok=True)
    run(kind, folder, *options, "--times", "2")
    assert last_number(kind, folder) == 2, "and then it goes on"


# a folder that may not be written


@pytest.fixture(params=["permissions", *DISKS])
def closing(request, tmp_path):
    """A folder, a function that closes it for writing, and what a writer is told then."""
    if request.param == "disk":
        folder = request.getfixturevalue("disk")
        remount = ["mount", "-o", "remount,ro", str(folder)]
        yield folder, lambda: subprocess.run(remount, check=True), "Read-only file system"
        return
    folder = tmp_path / "closed"
    folder.mkdir()

    def close():
        for path in (*folder.iterdir(), folder):
            path.chmod(0o555 if path == folder else 0o444)

    yield folder, close, "Permission denied"
    folder.chmod(0o755)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_read_only_says_so_in_a_line(kind, closing):
    folder, close, why = closing
    run(kind, folder, "--times", "1")
    close()
    lines = run(kind, folder, "--times", "3", through=[] if os.getuid() else ORDINARY)
    assert last_number(kind, folder) == 1
    if kind == "cassette":
        told = [line for line in lines if line.startswith("warning")]
        assert told == [f"warning {folder / 'talk.jsonl'}: this was not recorded: {why}"] * 2
        assert [line for line in lines if line.startswith("wrote")] == ["wrote 1", "wrote 2", "wrote 3"]
    else:
        assert [line.count(f"was not written: {why}") for line in lines] == [1, 1, 1]


# in the program that goes on


def test_the_error_says_what_happened_to_which_file(tmp_path):
    chat = Conversation("demo")
    chat.ask("hello")
    missing = tmp_path / "nowhere" / "talk.jsonl"
    with pytest.raises(NotWrittenError) as caught:
        chat.save(missing)
    assert isinstance(caught.value, OSError) and caught.value.errno == errno.ENOENT
    assert caught.value.filename == str(missing)
    assert str(caught.value) == (
        f"{missing} was not written: No such file or directory. What was there before is unchanged"
    )
    with pytest.raises(NotWrittenError, match=r"nowhere/talk\.md was not written"):
        chat.export(missing.with_suffix(".md"))
    assert chat.ask("and now?").text


def test_a_full_disk_costs_no_answer_with_a_trace_and_a_recording(tmp_path, monkeypatch, fake_provider):
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path / "traces"))
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    fake_provider.add(streams.reply("text", "chat"))
    chat = Conversation(
        "m",
        client_type="openai-chat",
        api_key="k",
        base_url=fake_provider.url("/v1"),
        cassette=tmp_path / "talk.jsonl",
        config={"trace_id": "x"},
    )
    with pytest.warns(RuntimeWarning) as told:
        assert chat.ask("hello").text
    said = sorted(str(one.message) for one in told)
    assert [("was not recorded" in one, "trace was not written" in one) for one in said] == [
        (True, False),
        (False, True),
    ]
    assert all("No space left on device" in one and "\n" not in one for one in said)
    assert chat.turns[0].state == "done" and list(tmp_path.rglob("*.json*")) == []


def test_a_new_file_has_the_usual_mode_a_trace_is_private_and_an_old_one_keeps_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MMSP_CACHE_DIR", str(tmp_path))
    before = os.umask(0o027)
    try:
        path = Conversation("demo").save(tmp_path / "talk.jsonl")
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
    path.chmod(0o604)
    Conversation("demo").save(path)
    assert path.stat().st_mode & 0o777 == 0o604
    traces = tracing.save("t", [], {}, "m")
    assert [one.stat().st_mode & 0o777 for one in traces] == [0o600, 0o600]
    assert json.loads(traces[0].read_text())["history"] == []


def test_what_a_link_points_to_is_written_and_the_link_stays(tmp_path):
    kept = tmp_path / "kept.jsonl"
    link = tmp_path / "talk.jsonl"
    link.symlink_to(kept)
    for _ in range(2):  # the first time there is nothing behind the link
        Conversation("demo", name="linked").save(link)
        assert link.is_symlink() and load(kept).name == "linked"


def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        Conversation("demo", name="piped").save(pipe)
        assert pipe.is_fifo() and [each.name for each in tmp_path.iterdir()] == ["pipe"]
        assert json.loads(os.read(reader, 100_000).splitlines()[0])["name"] == "piped"
    finally:
        os.close(reader)
