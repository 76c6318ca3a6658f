"""The transformations of tables before they are used: the engine that captures tries them against the source."""

import json

import httpx

from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.features.streams.schemas import Json
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.inspection.target import Target
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.secret_box import SecretBox
from thalweg.kernel.transformations import TableTransformations, needs_key
from thalweg.workflows.row_rules import Unasked, ask_all

CHECK = "transformations"
CHANGED = "transformations_changed"
CHANGED_KEY = "mask_key_changed"
TITLE = "Transformations of tables"
TOO_OLD = "This engine does not know them all: upgrade it to the version of the control plane, or leave these out."
LACKING = (
    "Set the table's REPLICA IDENTITY to FULL, as its line says. Or let the expression read that column alone, or none "
    "that may be long."
)
CURES: dict[str, str] = {
    ErrorCode.TRANSFORMATION_REFUSED: "Correct the transformation that the line names.",
    ErrorCode.MISSING_TABLE: "Take the table's transformations away, or create the table.",
}


def with_transformations(tables: list[Json], transformations: list[TableTransformations]) -> list[Json]:
    """The tables with those that are theirs, as an engine is told of them."""
    by_table = {transformation.key: transformation.for_engine() for transformation in transformations}
    changed = [(table, by_table.get((table["schema"], table["table"]))) for table in tables]
    return [{**table, "transformations": steps} if steps else table for table, steps in changed]


async def check_transformations(
    context: Context, engines: list[EngineRow], source: Target, tables: list[Json],
    transformations: list[TableTransformations],
) -> tuple[list[Check], list[FieldProblem]]:  # fmt: skip
    """`engines` are those that carry them out, the capturing one first; `tables` are the stream's. The problems have
    their places in the list of transformations."""
    checklist = Checklist(CheckSide.SOURCE)
    if not transformations:
        return [], []
    problems = await _check(context, checklist, engines, source, tables, transformations)
    return checklist.checks, problems


async def _check(
    context: Context, checklist: Checklist, engines: list[EngineRow], source: Target, tables: list[Json],
    transformations: list[TableTransformations],
) -> list[FieldProblem]:  # fmt: skip
    names = {(table["schema"], table["table"]) for table in tables}
    lost = [at for at, transformation in enumerate(transformations) if transformation.key not in names]
    if lost:
        cure = "Correct the name, include such a table, or take these transformations away."
        shown = [".".join(transformations[at].key) for at in lost]
        checklist.fail(
            CHECK, TITLE, f"There are transformations of tables that the stream does not have: {listed(shown)}.", cure
        )
        return [
            FieldProblem(
                pointer=f"/{at}/table", code=CHECK, message=f"The stream does not have {name}.", cure=cure,
            )
            for at, name in zip(lost, shown, strict=True)
        ]  # fmt: skip
    asked: list[Json] = [
        {
            "schema": transformation.schema_name,
            "table": transformation.table,
            "transformations": transformation.for_engine(),
        }
        for transformation in transformations
    ]
    try:
        problems = await ask_all(context, engines, source, asked)
    except Unasked as unasked:
        failure = unasked.failure
        checklist.fail(
            CHECK, TITLE, f"{unasked.engine} could not check the transformations: {failure.message}",
            TOO_OLD if _knows_none(failure) else failure.cure or "Check again in a moment.",
        )  # fmt: skip
        return []
    if not problems:
        checklist.ok(CHECK, TITLE, f"{engines[0].name} can transform {len(transformations)} tables.")
        return []
    certain = [problem for problem in problems if problem.certain]
    shown = [f"{problem.schema_name}.{problem.table}: {problem.message}" for problem in certain or problems]
    if not certain:
        troubled = {(problem.schema_name, problem.table) for problem in problems}
        checklist.warn(
            CHECK, TITLE,
            f"Expressions of {len(troubled)} of {len(transformations)} tables read values that an update may not "
            "bring: the stream would stop in front of it.",
            LACKING, None, shown,
        )  # fmt: skip
        return []
    cures = " ".join(dict.fromkeys(CURES.get(problem.code, "Do what the line says.") for problem in certain))
    checklist.fail(
        CHECK, TITLE,
        f"The transformations of {len(certain)} of {len(transformations)} tables cannot be carried out: the stream "
        "would stop.",
        cures, None, shown,
    )  # fmt: skip
    places = {transformation.key: at for at, transformation in enumerate(transformations)}
    return [
        FieldProblem(
            pointer=f"/{places[problem.schema_name, problem.table]}"
            + (f"/steps/{problem.step}" if problem.step is not None else ""),
            code=CHECK, message=problem.message, cure=CURES.get(problem.code),
        )
        for problem in certain
    ]  # fmt: skip


def _knows_none(failure: EngineFailure) -> bool:
    """It knows no rules either, or refuses the member of the tables."""
    return failure.status in (httpx.codes.NOT_FOUND, httpx.codes.BAD_REQUEST)


def ask_for_changed_transformations(checklist: Checklist, tables_before: list[Json], tables: list[Json]) -> None:
    """A request that leaves a table's transformations out may have forgotten them: what was masked would be sent."""
    before = {(table["schema"], table["table"]): table.get("transformations") for table in tables_before}
    after = {(table["schema"], table["table"]): table.get("transformations") for table in tables}
    changed = [name for name, steps in after.items() if name in before and steps != before[name]]
    if changed:
        checklist.ask(
            CHANGED, "Changed transformations",
            "Changes of these tables are sent with other columns or other masks from now on. Rows that a destination "
            "has stay as they are: a value that was sent unmasked is still there.",
            "Accept this, and copy each table again to bring its rows in line. Or send the transformations that the "
            "stream has.",
            [".".join(name) for name in changed],
            bound_to=[json.dumps([before[name], after[name]], sort_keys=True) for name in changed],
        )  # fmt: skip


def ask_for_changed_key(checklist: Checklist, of: StreamRow, secrets: SecretBox, key: str) -> None:
    """Joins between rows that were sent before and after would find nothing."""
    keyed = [
        f"{table['schema']}.{table['table']}" for table in of.tables if needs_key(table.get("transformations", []))
    ]
    if keyed and of.mask_key_sealed is not None and secrets.open(of.mask_key_sealed) != key:
        checklist.ask(
            CHANGED_KEY, "Changed masking key",
            "Values of these tables become others from now on than before. Rows that a destination has stay as they "
            "are, and are not joined with later ones any more.",
            "Accept this, and copy each table again to bring its rows in line. Or leave the key out: it stays.",
            keyed,
        )  # fmt: skip
