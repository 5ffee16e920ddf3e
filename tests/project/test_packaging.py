"""What goes out to users: the wheel holds everything the package needs and nothing else."""

from __future__ import annotations

import email
import json
import re
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import mmsp_nb

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    built = subprocess.run([*command, "-w", str(folder), str(ROOT)], capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    assert path.name == f"mmsp_nb-{mmsp_nb.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def package_files() -> set[str]:
    """The package's files in the source tree, without what Python makes."""
    found = (ROOT / "mmsp_nb").rglob("*")
    return {str(path.relative_to(ROOT)) for path in found if path.is_file() and "__pycache__" not in path.parts}


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == package_files()


@pytest.mark.parametrize("wanted", ["mmsp_nb/py.typed", "mmsp_nb/notebook/static/", "mmsp_nb/providers/models.json"])
def test_the_wheel_holds_types_static_files_and_data(wheel: zipfile.ZipFile, wanted: str) -> None:
    assert any(name.startswith(wanted) for name in wheel.namelist())


def test_the_wheel_carries_the_licence(wheel: zipfile.ZipFile) -> None:
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_the_wheel_is_small(wheel: zipfile.ZipFile) -> None:
    assert sum(entry.compress_size for entry in wheel.infolist()) < 1_000_000


def test_the_metadata_has_what_an_index_shows(metadata: Message) -> None:
    assert metadata["Version"] == mmsp_nb.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert str(metadata.get_payload()).startswith("# mmsp_nb")
    assert {"lab", "local", "test"} <= set(metadata.get_all("Provides-Extra", []))


def test_what_make_lab_installs_has_all_that_the_notebooks_import(metadata: Message) -> None:
    imported = set()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        imported |= set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
        imported |= {"matplotlib"} if "%matplotlib" in code else set()
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line or "'lab'" in line]
    brought = {re.split(r"[^\w-]", line)[0] for line in needed}
    assert imported - set(sys.stdlib_module_names) - {"mmsp_nb"} <= brought


def test_the_wheel_brings_the_pytest_plugin(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    assert "[pytest11]\nmmsp_nb.testing.plugin = mmsp_nb.testing.plugin" in wheel.read(name).decode()


def test_no_vendor_sdk_is_needed(metadata: Message) -> None:
    needed = " ".join(metadata.get_all("Requires-Dist", [])).lower()
    for sdk in ("openai", "anthropic", "google-genai", "boto3"):
        assert sdk not in needed
