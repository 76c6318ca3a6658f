"""Pages that list what the code defines list all of it."""

from pathlib import Path

from thalweg.advisor.schemas import Verdict

ROOT = Path(__file__).resolve().parents[2]


def test_the_guide_to_the_advisor_explains_every_verdict() -> None:
    guide = (ROOT / "docs/guides/advisor.md").read_text()
    table = guide.partition("| verdict | meaning |")[2].partition("\n\n")[0]
    listed = [verdict.strip() for row in table.splitlines()[2:] for verdict in row.split("|")[1].split(",")]
    assert sorted(listed) == sorted(Verdict)
