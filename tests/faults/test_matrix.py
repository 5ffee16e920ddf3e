"""The fault matrix: all faults in all dialects for the client, and for the other consumers with the dialects rotated.

``MMSP_NB_FAULTS=all`` plays every cell, as `make faults` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import matrix
import pytest
from fault_rows import ROWS
from site_of_faults import Site

from mmsp_nb.testing import faults

CELLS = list(matrix.cells(everything=os.environ.get("MMSP_NB_FAULTS") == "all"))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.mark.parametrize(("fault", "client_type", "consumer"), CELLS)
def test_a_fault_is_met(site: Site, fault: str, client_type: str, consumer: str) -> None:
    assert matrix.run_cell(site, fault, client_type, consumer).problems == []


def test_every_fault_that_has_a_name_is_played() -> None:
    played = {name for row in ROWS for name in (row.name, row.name.rpartition("-")[0])}
    other = {"unauthorized": "status-401", "endless": "endless-answer"}
    assert {other.get(name, name) for name in faults.FAULTS} <= played


def test_the_matrix_notices_a_wrong_outcome(site: Site) -> None:
    """A fault taken for an odd but whole answer, and the other way round."""
    from dataclasses import replace

    for name, errors in (("error-in-stream", frozenset[str]()), ("bom", frozenset({"ConnectionCutError"}))):
        row = replace(matrix.BY_NAME[name], errors=errors, reported=False)
        wrong = matrix.play(site, row, "openai-chat", "client")
        assert wrong.problems
