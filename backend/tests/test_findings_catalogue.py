"""The catalogue of findings: it has each that the advisor can produce, and tests produce each that it has."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support import produced_findings
from tests.test_advisor_findings import findings
from thalweg.advisor import findings as package
from thalweg.advisor.finding import Finding
from thalweg.advisor.findings.catalogue import CATALOGUE
from thalweg.advisor.findings.codes import FindingCode

BACKEND = Path(__file__).resolve().parents[1]


def test_the_catalogue_has_every_code() -> None:
    """UNKNOWN is no finding: codes of other versions become it."""
    assert set(CATALOGUE) == set(FindingCode) - {FindingCode.UNKNOWN}
    (told, *_) = findings("missing_index")
    stored = {**told.model_dump(), "code": "apply_of_another_version"}
    assert Finding.model_validate(stored).code is FindingCode.UNKNOWN


def test_its_guides_are_there() -> None:
    docs = BACKEND.parent / "docs"
    assert {kind.guide for kind in CATALOGUE.values() if not (docs / f"{kind.guide}.md").exists()} == set()


def test_a_rule_yields_every_code() -> None:
    rules = (file for file in Path(package.__path__[0]).glob("*.py") if file.name not in ("codes.py", "catalogue.py"))
    text = "\n".join(file.read_text() for file in rules)
    assert {code for code in CATALOGUE if not re.search(rf"FindingCode\.{code.name}\b", text)} == set()


def test_a_test_produces_every_finding_with_every_severity(tmp_path: Path) -> None:
    """Also none with another severity. Only the tests of the advisor's rules are asked, which need no server."""
    produced = tmp_path / "produced"
    ran = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", produced_findings.__name__,
            *sorted(str(file) for file in (BACKEND / "tests").glob("test_advisor_*.py")),
        ],
        cwd=BACKEND, env={**os.environ, produced_findings.FILE: str(produced)}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    expected = {f"{code} {severity}" for code, kind in CATALOGUE.items() for severity in kind.severities}
    assert set(produced.read_text().splitlines()) == expected
