"""Finds the functions and types that copied definitions use: they run at the destination as the role that applies.

The source's owner writes the definitions: defaults, generated columns, checks, and the expressions of indexes and of
partition keys. Functions are not copied; the definitions call those of the same name at the destination, with arguments
that the source chooses, whenever rows are written. A consent goes to the engine as digests of the definitions; the
engine refuses to create definitions that call anything else.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist, listed, quoted_table
from thalweg.inspection.connection import Connection, read_all, read_row
from thalweg.kernel.settings import PACKAGE

# The engine's own questions (engine/src/instantiation/called_code.inc): it asks them again whenever it makes something.
QUESTIONS = (PACKAGE / "contract" / "called_code.inc").read_text().removeprefix('R"sql(').rstrip().removesuffix(')sql"')
# At the source: every function and operator in an expression's tree, those that pg_depend does not have included (what
# is built in is pinned), with a digest of the expression. Also every type of somebody's in a tree, of a column or of a
# foreign key's columns, and what it consists of; its kind says how it is used.
# At the destination: those of them that are no functions of PostgreSQL's that merely compute, or that not everybody may
# call. The list of names does nothing to anybody. By their text: before PostgreSQL 16 to_regprocedure fails where a
# type of the arguments is missing, which the copy has still to make. Types are judged by the code that they lead to:
# casts, where something is computed of them; checks of domains; functions of ranges; and what an owner who could not
# act as the role anyway can still add.
# There, too: what code that runs as the role could do beyond the tables of the stream.
CALLED, HARMFUL, POWERS = QUESTIONS.replace("%", "%%").replace("$1", "%(first)s").replace("$2", "%(second)s").split(";")
CHECK = "carried_code"
TITLE = "Code that the source's definitions call"
CURE = (
    "Make these tables at the destination yourself, with the definitions that you want. Or apply as a role that may "
    "write the stream's tables and nothing else."
)

AskedCode = dict[tuple[str, str], frozenset[str]]
"""By table: digests of definitions."""
ACCEPTED_MAX = 1000
"""The digests that a table may have; the engine takes no more."""


@dataclass(frozen=True)
class Call:
    table: tuple[str, str]
    part: str
    kind: str
    """function, operator, or a type with its use: "type, computed", "column type, in JSON" """
    name: str
    digest: str | None
    """The digest of the definition that calls it; None if its table has gone meanwhile."""

    @property
    def shown(self) -> str:
        return f"type {self.name}" if "type" in self.kind else self.name

    @property
    def follows(self) -> bool:
        """A table that is there may get the definition all the same: after its rows, or with a new partition."""
        return self.part == "partition key" or self.part.startswith(("constraint ", "index "))


async def read_calls(connection: Connection, tables: list[Table]) -> list[Call]:
    """At the source."""
    names = {table.oid: table.name for table in tables}
    rows = await read_all(connection, CALLED, {"first": list(names)})
    return [Call(names[row["oid"]], row["part"], row["kind"], row["name"], row["digest"]) for row in rows]


def code_of(calls: Iterable[Call]) -> AskedCode:
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in calls:
        if call.digest is not None:
            found[call.table].add(call.digest)
    return {table: frozenset(digests) for table, digests in found.items()}


async def _harmful(connection: Connection, calls: list[Call]) -> list[Call]:
    """The destination's objects of these names run there, whatever the names mean at the source."""
    named = sorted({(call.kind, call.name) for call in calls})
    asked = {"first": [kind for kind, _ in named], "second": [name for _, name in named]}
    found = {(row["kind"], row["name"]) for row in await read_all(connection, HARMFUL, asked)}
    return [call for call in calls if (call.kind, call.name) in found]


async def check_carried_code(checklist: Checklist, connection: Connection, called: list[Call]) -> list[Call]:
    """At a destination; `called` are those of definitions that the stream may make there. Gives those that somebody has
    to accept."""
    role = await read_row(connection, POWERS)
    calls = await _harmful(connection, called)
    if not calls:
        checklist.ok(CHECK, TITLE, "They use nothing but harmless functions of PostgreSQL itself.")
        return []
    by_function: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        by_function[call.shown].append(f"{'.'.join(call.table)} ({call.part})")
    user, powers = role["name"], role["powers"]
    detail = (
        f"{_many(len(by_function))} of the destination's server would be used by defaults, generated columns, checks "
        f"or indexes that come from the source, with arguments that the source's owner chooses, as {user}"
    )
    if not powers:
        names = "; ".join(f"{function}: {listed(places)}" for function, places in by_function.items())
        checklist.warn(CHECK, TITLE, f"{detail}: {names}.", CURE)
        return []
    checklist.ask(
        CHECK, TITLE,
        f"{detail}, who has {', '.join(powers)}: anyone who may alter the source's tables could do the same here.",
        f"{CURE} Only an admin can accept it as it is.",
        [f"{function}: {listed(places)}" for function, places in by_function.items()],
        bound_to=sorted(f"{'.'.join(call.table)} {call.digest}" for call in calls),
    )  # fmt: skip
    return calls


def check_amount(checklist: Checklist, code: AskedCode) -> None:
    crowded = [quoted_table(table) for table, digests in code.items() if len(digests) > ACCEPTED_MAX]
    if crowded:
        checklist.fail(
            CHECK, TITLE,
            f"More than {ACCEPTED_MAX} definitions of one table would have to be accepted: {listed(crowded)}.", CURE,
        )  # fmt: skip


def _many(functions: int) -> str:
    return "1 function, operator or type" if functions == 1 else f"{functions} functions, operators and types"
