"""The engine tries what it would do at a destination. Its findings become two checks: what stops the stream, and what
the destination would lack."""

from thalweg.db.models import EngineRow
from thalweg.engine_client.access import client_of
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.documents import RehearsalProblem
from thalweg.features.streams.schemas import Json
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.inspection.target import Target
from thalweg.kernel.context import Context
from thalweg.kernel.problems import Problem
from thalweg.kernel.words import counted, ended
from thalweg.kernel.words import listed as listed_names

TITLE = "Definitions"
LEFT_OUT_TITLE = "What the destination cannot have"


async def rehearse(
    context: Context,
    engine: EngineRow | Problem,
    source: Target,
    destination: Target,
    tables: list[Json],
) -> list[Check]:
    """`engine` is the one that applies, or why it is not known."""
    checklist = Checklist(CheckSide.DESTINATION)
    if isinstance(engine, Problem):
        checklist.fail("definitions", TITLE, engine.detail, engine.cure or "Choose an engine.")
        return checklist.checks
    resources = context.resources
    client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    try:
        networks = resources.settings.database_networks.text
        problems = await client.rehearse(source.for_engine(), destination.for_engine(), networks, tables)
    except EngineFailure as failure:
        checklist.fail(
            "definitions", TITLE, f"{engine.name} could not try the tables' definitions: {failure.message}",
            failure.cure or "Start the engine in the version of the control plane, and check again.",
        )  # fmt: skip
        return checklist.checks
    _judge(checklist, problems, len(tables))
    return checklist.checks


def _judge(checklist: Checklist, problems: list[RehearsalProblem], tables: int) -> None:
    refused = [problem for problem in problems if problem.outcome == "refused"]
    left_out = [problem for problem in problems if problem.outcome == "left_out"]
    if any(_is_extension(problem) for problem in refused):
        refused += [problem for problem in left_out if _is_extension(problem)]
        left_out = [problem for problem in left_out if not _is_extension(problem)]
    refused, left_out = _extensions_first(refused), _extensions_first(left_out)
    there = counted(tables, "table")
    not_tried = [problem for problem in problems if problem.outcome == "not_tried"]
    if refused:
        checklist.fail(
            "definitions", TITLE, "The engine tried to create the tables, and the destination would refuse them.",
            _cures(refused), _sql(refused), [_in_words(problem) for problem in refused],
        )  # fmt: skip
    elif not_tried:
        checklist.warn(
            "definitions", TITLE,
            f"The engine has tried to make all that is missing of {there} but what calls code, which would "
            "run as a powerful role before anybody has accepted it: "
            f"{listed([problem.message for problem in not_tried])}.",
            "Accept the code once you know what it does, or apply as a role that may write the stream's tables and "
            "nothing else: then all of it is tried.",
        )  # fmt: skip
    else:
        checklist.ok("definitions", TITLE, f"The engine has tried to make all that is missing of {there}.")
    if left_out:
        checklist.ask(
            "left_out_there", LEFT_OUT_TITLE,
            "The stream would run, but its tables at the destination would lack this.",
            _cures(left_out), [_in_words(problem) for problem in left_out], _sql(left_out),
        )  # fmt: skip
    else:
        checklist.ok(
            "left_out_there",
            LEFT_OUT_TITLE,
            "The destination can have every default, constraint and index of the source.",
        )


def _in_words(problem: RehearsalProblem) -> str:
    if problem.part in ("extension", "function") or not problem.sqlstate:
        return problem.message
    what = (
        problem.table
        if problem.part in ("table", "type", "schema")
        else f"{problem.part} {problem.name} of {problem.table}"
    )
    return f"{what}: {ended(problem.message)}"


def _is_extension(problem: RehearsalProblem) -> bool:
    return problem.part == "extension"


def _extensions_first(problems: list[RehearsalProblem]) -> list[RehearsalProblem]:
    """By their names: one that another requires comes before it, as cube before earthdistance, hstore before
    hstore_plperl, postgis before postgis_raster."""
    extensions = sorted(filter(_is_extension, problems), key=lambda problem: problem.name)
    return [*extensions, *(problem for problem in problems if not _is_extension(problem))]


def _cures(problems: list[RehearsalProblem]) -> str:
    """One for all extensions that are to be created."""
    created = [problem for problem in problems if _is_extension(problem) and "CREATE EXTENSION" in problem.cure_sql]
    several = created if len(created) > 1 else []
    packages = [problem.name for problem in several if problem.cure.startswith("Install ")]
    cures = dict.fromkeys(problem.cure for problem in problems if problem.cure and problem not in several)
    if packages:
        first = f"Install the packages of {listed_names(packages)} on the destination's server, then create"
    else:
        first = "Create"
    ours = [f"{first} the {len(several)} extensions at the destination, in this order."] if several else []
    return " ".join([*ours, *cures]) or "Do what each line says."


OF_SCHEMAS = ("CREATE SCHEMA IF NOT EXISTS ", "GRANT CREATE, USAGE ON SCHEMA ")
"""The lines that an engine begins a cure with."""


def _sql(problems: list[RehearsalProblem]) -> str | None:
    """A schema that several cures need is made once, by the first of them."""
    made: set[str] = set()
    cures = dict.fromkeys(problem.cure_sql for problem in problems if problem.cure_sql)
    return "\n".join(_without(cure, made) for cure in cures) or None


def _without(cure: str, made: set[str]) -> str:
    lines, rest = [], cure
    while rest.startswith(OF_SCHEMAS):
        line, _, rest = rest.partition("\n")
        if line not in made:
            lines.append(line)
            made.add(line)
    return "\n".join([*lines, rest])
