"""Names of tables at the destinations before they are used: each table has one of its own there."""

from thalweg.features.streams.schemas import Json
from thalweg.inspection.checks import Checklist
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.renames import DestinationNames, Name, Rename, clashes, is_reserved, name_there

CHECK = "renames"
CHANGED = "renames_changed"
TITLE = "Names at the destinations"
CURE = "Correct the name, or take it away."


def check_renames(tables: list[Name], renames: list[Rename]) -> tuple[list[Check], list[FieldProblem]]:
    """`tables` are the stream's. The problems have their places in the list of renames."""
    checklist = Checklist(CheckSide.SOURCE)
    if not renames:
        return [], []
    names = DestinationNames(renames)
    problems = [
        FieldProblem(pointer=f"/{at}{member}", code=CHECK, message=message, cure=CURE)
        for at, rename in enumerate(renames)
        for member, message in _problems(rename, tables, names)
    ]
    if problems:
        checklist.fail(
            CHECK, TITLE, "Some tables cannot have the names that the stream wants for them.", CURE, None,
            list(dict.fromkeys(problem.message for problem in problems)),
        )  # fmt: skip
    else:
        others = [name for name in tables if names.of(name) != name]
        checklist.ok(CHECK, TITLE, f"{len(others)} of {len(tables)} tables have other names there.")
    return checklist.checks, problems


def _problems(rename: Rename, tables: list[Name], names: DestinationNames) -> list[tuple[str, str]]:
    """Each with the member that is to blame."""
    concerned = [
        name for name in tables if name == rename.key or (rename.table is None and name[0] == rename.schema_name)
    ]
    if not concerned:
        whole = rename.table is None
        message = f"The stream has no table {'of the schema ' if whole else ''}{rename.shown}."
        return [("/schema" if whole else "/table", message)]
    member = "/to_schema" if rename.to_table is None else "/to_table"
    if rename.to_schema is not None and is_reserved(rename.to_schema):
        return [("/to_schema", f"{rename.to_schema} is a schema of PostgreSQL or of Thalweg.")]
    return [(member, message) for message in clashes(tables, names, concerned)]


def ask_for_changed_names(checklist: Checklist, tables_before: list[Json], tables: list[Json]) -> None:
    before = {(table["schema"], table["table"]): name_there(table) for table in tables_before}
    after = {(table["schema"], table["table"]): name_there(table) for table in tables}
    changed = [name for name, there in after.items() if name in before and there != before[name]]
    if changed:
        checklist.ask(
            CHANGED, "Changed names at the destinations",
            "These tables are renamed at the destinations when the stream goes on. Their users there have to know the "
            "new names; partitions stay where they are.",
            "Accept this. Or send the names that the stream has.",
            [f"{'.'.join(name)}: {'.'.join(before[name])} becomes {'.'.join(after[name])}" for name in changed],
        )  # fmt: skip
