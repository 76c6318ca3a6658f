"""Counts of what row rules have decided, and where the rules are evaluated."""

from thalweg.cli.client import Json
from thalweg.cli.output import ago_and_when, number, out, print_table


def print_rule_counts(counts: Json, destination: str | None = None) -> None:
    """`destination`: its own rules have decided so."""
    title = f"RULES AT {destination} OF" if destination else "RULES OF"
    out.print()
    print_table(
        [title, "FROM", ">PASSED", ">DROPPED", ">BECAME INSERTS", ">BECAME DELETES", ">BY POLICY"],
        [
            [
                f"{table['schema']}.{table['table']}", ", ".join(table["scopes"]), number(table["passed"]),
                number(table["dropped"]), number(table["became_inserts"]), number(table["became_deletes"]),
                number(table.get("by_policy", 0)),
            ]
            for table in counts["tables"]
        ],
    )  # fmt: skip
    began = f"changes began to be read for {destination}" if destination else "the capture started"
    out.print(
        f"Counted since {began}, {ago_and_when(counts['counted_since'])}. Large transactions are judged before they "
        "commit: changes that the source rolls back count, too. By policy: on_error of a rule has decided.",
        style="dim",
    )
    for table in counts["tables"]:
        if place := _evaluated(table):
            out.print(f"{table['schema']}.{table['table']}: {place}", style="dim", markup=False)


def _evaluated(table: Json) -> str:
    """Where a table's rules are evaluated for inserts and updates; empty: only an engine may do it, or has not told."""
    places = []
    if table.get("at_source"):
        operations = " and ".join(f"{operation.lower()}s" for operation in table["at_source"])
        places.append(f"evaluated at the source: {operations}; changes dropped there are not sent, and not counted")
    if table.get("at_engine_because"):
        rest = "the rest at the engine" if places else "evaluated at the engine"
        places.append(f"{rest}, because {table['at_engine_because']}")
    return "; ".join(places)
