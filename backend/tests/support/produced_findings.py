"""A plugin of pytest: writes the code and severity of each finding that a run's tests make the advisor produce to the
file PRODUCED_FINDINGS, one a line. The run must be in one process."""

import os
from pathlib import Path
from typing import Any

import pytest

from thalweg.advisor.finding import Finding
from thalweg.advisor.findings.clues import Clues

FILE = "PRODUCED_FINDINGS"
_produced: set[str] = set()


def pytest_configure() -> None:
    finding = Clues.finding

    def recording(*arguments: Any, **named: Any) -> Finding:
        found = finding(*arguments, **named)
        _produced.add(f"{found.code} {found.severity}")
        return found

    Clues.finding = recording  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    Path(os.environ[FILE]).write_text("\n".join(sorted(_produced)))
