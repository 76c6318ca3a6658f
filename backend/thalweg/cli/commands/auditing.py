"""audit."""

from typing import Annotated

import typer

from thalweg.cli.client import connect
from thalweg.cli.output import AsJson, print_json, print_table, write_file


def audit(
    target: Annotated[str | None, typer.Option(help="Only changes of the resource with this id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many, the newest first.")] = 20,
    changes_of: Annotated[
        int | None, typer.Option(help="Instead: the changes of the transaction that this entry discarded, as NDJSON.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List changes: the user, the change and the time."""
    if changes_of is not None:
        write_file(connect().pieces(f"/audit/{changes_of}:changes"))
        return
    items = connect().get("/audit", target_id=target, limit=limit)["items"]
    if as_json:
        print_json(items)
        return
    print_table(
        ["ENTRY", "AT", "WHO", "VIA", "WHAT", "TARGET", "NAME"],
        [
            [
                item["id"],
                item["at"][:19],
                item["actor_name"],
                item["via"],
                item["sentence"],
                item["target_type"],
                item["target_name"],
            ]
            for item in items
        ],
    )
