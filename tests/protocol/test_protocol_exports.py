"""`mmsp_nb.protocol` offers its names, and loads only what is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mmsp_nb import protocol


def test_every_public_name_can_be_had_from_the_package() -> None:
    assert sorted(protocol.__all__) == sorted(protocol._MODULE)
    for name in protocol.__all__:
        value = getattr(protocol, name)
        assert value.__name__ == name
        assert value.__module__ == f"mmsp_nb.protocol.{protocol._MODULE[name]}"
    assert set(protocol.__all__) <= set(dir(protocol))


def test_no_module_has_the_name_of_something_public() -> None:
    assert not set(protocol.__all__) & set(protocol._HOME)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = protocol.nonsense


def test_assembling_a_stream_needs_no_pydantic() -> None:
    code = "import sys, mmsp_nb.protocol as p; p.EventStream, p.repair, p.AbortSignal; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
