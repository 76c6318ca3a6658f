"""Writes docs/reference/findings.md from the advisor's catalogue. `--check` fails when it is stale."""

import sys
from pathlib import Path

from thalweg.advisor.findings.catalogue import CATALOGUE, FindingPlace

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "findings.md"
INTRODUCTION = """<!-- Written by `make docs` from backend/thalweg/advisor/findings/catalogue.py. Do not edit. -->

# Findings

What [the advisor](../guides/advisor.md) can find. Every finding has a stable code, the same in the API, in the console
and on the command line. Scripts may match on it. A finding of a stored run that another version took may have the code
`unknown`.

The severity says what the finding asks for: `critical`, the path stands still or loses most of its speed; `warning`,
something slows it down; `advice`, a setting would help; `information`, nothing needs to be done. The title of a finding
may name the table, session or database in question, and its cures have the figures, the parameters and the SQL.
"""
HEADINGS = {
    FindingPlace.STREAM: "Of the whole stream",
    FindingPlace.ENGINE: "Of an engine",
    FindingPlace.SOURCE: "Of the source",
    FindingPlace.CAPTURE: "Of capture",
    FindingPlace.PROPAGATION: "Of propagation between two engines",
    FindingPlace.APPLY: "Of apply",
    FindingPlace.DESTINATION: "Of a destination",
}


def rendered() -> str:
    parts = [INTRODUCTION.strip()]
    for place in FindingPlace:
        rows = [
            f"| `{code}` | {' or '.join(f'`{severity}`' for severity in kind.severities)} | **{kind.title}.** "
            f"{kind.meaning} | {kind.cure} | [{kind.guide.partition('/')[2]}](../{kind.guide}.md) |"
            for code, kind in sorted(CATALOGUE.items())
            if kind.place is place
        ]
        head = ["| code | severity | what it means | cure | guide |", "|---|---|---|---|---|"]
        parts += [f"## {HEADINGS[place]}", "\n".join([*head, *rows])]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = rendered()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/reference/findings.md is stale: run backend/scripts/export_findings.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
