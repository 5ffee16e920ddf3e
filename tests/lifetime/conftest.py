from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def script():
    """Runs a script in an interpreter of its own; gives the finished process."""

    def run(code: str, timeout: float = 90, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "always::ResourceWarning", "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=timeout,
            **options,
        )

    return run
