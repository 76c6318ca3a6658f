"""All findings of a run, the most important first."""

from thalweg.advisor.analysis import PathView
from thalweg.advisor.finding import Finding, FindingSeverity
from thalweg.advisor.findings.applying import applying
from thalweg.advisor.findings.assembling import assembling
from thalweg.advisor.findings.capturing import capturing
from thalweg.advisor.findings.clues import Clues, StreamFacts
from thalweg.advisor.findings.conditions import conditions
from thalweg.advisor.findings.mining import mining
from thalweg.advisor.findings.waiting import waiting

FINDERS = (conditions, waiting, mining, applying, assembling, capturing)
SEVERITIES = list(FindingSeverity)


def find(views: list[PathView], facts: dict[str, StreamFacts], event_threshold: float) -> list[Finding]:
    """`facts` by path id. Causes come before what comes with them, then severity, then expected gain."""
    found = [
        finding
        for view in views
        for finder in FINDERS
        for finding in finder(Clues(view, facts[view.path.path.path_id], event_threshold))
    ]
    found.sort(key=_order)
    for number, finding in enumerate(found, start=1):
        finding.rank = number
    return found


def _order(finding: Finding) -> tuple[int, int, float]:
    """Trouble first, and what is merely told last, whether it is a cause or not."""
    informs = finding.severity is FindingSeverity.INFORMATION
    return (
        2 if informs else 0 if finding.is_cause else 1, SEVERITIES.index(finding.severity),
        -(finding.gain_percent or 0.0),
    )  # fmt: skip
