"""Tables whose updates and deletes somebody gives up: what that means, and whether this source can leave them out."""

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.connection import Connection, read_all
from thalweg.inspection.schemas import TableKind

IDENTIFIER, TITLE = "inserts_only", "Tables with inserts only"
CURE = "Nothing, if that is intended. Otherwise give the tables a key and take them out of inserts_only."


def check_given_up(checklist: Checklist, tables: list[Table], given_up: frozenset[tuple[str, str]]) -> None:
    """`tables` are those chosen. Says nothing where nothing is given up."""
    if not given_up:
        return
    chosen = [table for table in tables if table.name in given_up]
    sentences = []
    if chosen:
        names = listed([table.shown for table in chosen])
        sentences.append(
            f"{names}: updates and deletes stay at the source, as you have chosen. Only inserts and truncates are "
            "replicated, so the destination keeps rows that the source has changed or deleted."
        )
    if unique := [table.shown for table in chosen if _refuses_rows(table)]:
        sentences.append(
            f"{listed(unique)}: a value of a unique key that the source has freed by an update or delete is still "
            "taken at the destination; a new row with that value is an error there."
        )
    if partitioned := [table.shown for table in chosen if table.kind is TableKind.PARTITIONED]:
        sentences.append(
            f"{listed(partitioned)}: PostgreSQL turns an update that moves a row to another partition into an insert, "
            "so the destination then has the row twice."
        )
    if needless := [table.shown for table in chosen if not table.unidentified]:
        sentences.append(f"{listed(needless)}: the rows can be identified, so all changes could be replicated.")
    if others := sorted(".".join(name) for name in given_up - {table.name for table in chosen}):
        sentences.append(f"{listed(others)}: the rules choose no table of that name.")
    checklist.warn(IDENTIFIER, TITLE, " ".join(sentences), CURE)


def _refuses_rows(table: Table) -> bool:
    return any(bool(leaf.facts["refuses_rows"]) for leaf in (table, *table.leaves))


def ask_for_what_was_given_up(checklist: Checklist, back: list[str]) -> None:
    """`back` are tables of a stream whose updates and deletes shall be replicated again."""
    if back:
        checklist.ask(
            "updates_again", "Tables with updates and deletes again",
            "Until now, updates and deletes of these tables were not replicated. The stream stops at these tables "
            "until you copy them again, which deletes their rows at the destination.",
            "Accept this, and copy each table again once the stream asks for it. Or leave them in inserts_only.", back,
        )  # fmt: skip


async def check_publication(checklist: Checklist, connection: Connection, stream_id: str) -> None:
    """A stream that an earlier version made has one publication, and its slot is older than a second one would be."""
    name = f"thalweg_{stream_id}_inserts"
    if await read_all(connection, "SELECT FROM pg_publication WHERE pubname = %(name)s", {"name": name}):
        return
    checklist.fail(
        "inserts_publication", "Publication of inserts",
        f"The stream has no publication {name}: an earlier version created the stream, or somebody dropped the "
        "publication. The slot is older than a new publication would be, so the source could not send its changes.",
        "Create another stream for the tables with inserts only, or delete this one and create it again.",
    )  # fmt: skip
