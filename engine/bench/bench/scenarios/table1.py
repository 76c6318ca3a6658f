"""Instructions of a destination's backend for a row, by ways to write it (Wong et al. 2009, table I)."""

import argparse
from collections.abc import Callable

from bench.instructions import CountedServer, Session
from bench.report import Report
from bench.row_writers import WRITERS, Change, Shape, Writer

DATABASE = "counted"
SHAPES = (Shape("narrow", integers=2, texts=2), Shape("large", integers=2, texts=1, large_bytes=1500),
          Shape("wide", integers=50, texts=49))
MOVED = 1_000_000  # added to a key that is changed
METHOD = """callgrind counts the instructions of one backend (inside PostgresMain; what the kernel does is not counted).
Figure: instructions for a row, from two sessions of which one writes twice as many rows, in one transaction each; so
connecting, preparing and committing are left out. Tables: narrow with 5 small columns, large with 4 small ones and one
of 1 500 bytes, wide with 100 small ones; primary key on the first, no other index. An update gives all columns new
values. Ways: a statement a row with its values as literals; prepared statements with binary values in a pipeline;
statements over arrays of 500 rows; the data layer, 96 KiB of row frames a call. The ratio: the smallest of the first
over the last."""


def insert(shape: Shape, key: int) -> Change:
    return Change(None, shape.row(key, 1))


def update(shape: Shape, key: int) -> Change:
    return Change(key, shape.row(key, 2))


def update_key(shape: Shape, key: int) -> Change:
    return Change(key, shape.row(key + MOVED, 2))


def delete(_shape: Shape, key: int) -> Change:
    return Change(key, None)


OPERATIONS: dict[str, Callable[[Shape, int], Change]] = {"insert": insert, "update": update,
                                                         "update of the key": update_key, "delete": delete}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1000, help="of the shorter session")


def run(arguments: argparse.Namespace) -> None:
    report = Report("table1", arguments)
    report.method(f"Sessions of {arguments.rows} and {2 * arguments.rows} rows. {METHOD}")
    ratios = []
    with CountedServer() as server:
        server.cluster.make_database(DATABASE)
        server.cluster.sql(DATABASE, "CREATE EXTENSION thalweg_datalayer", *(shape.create() for shape in SHAPES))
        report.say(f"{'table':<8} {'operation':<18} " + " ".join(f"{name:>20}" for name in WRITERS) + f" {'fewer':>7}")
        for shape in SHAPES:
            for operation in OPERATIONS:
                found = {name: _instructions(server, shape, operation, writer, arguments.rows)
                         for name, writer in WRITERS.items()}
                first, *_, last = found.values()
                report.figure(f"{shape.name:<8} {operation:<18} "
                              + " ".join(f"{count:>20,.0f}" for count in found.values())
                              + f" {100 * (1 - last / first):>5.0f} %",
                              workload=f"{shape.name}, {operation}",
                              **{name.replace(",", "").replace(" ", "_"): round(count) for name, count in found.items()})
                ratios.append(first / last)
    report.ratio(min(ratios))


def _instructions(server: CountedServer, shape: Shape, operation: str, writer: Writer, rows: int) -> float:
    short, long = (_session(server, shape, operation, writer, count) for count in (rows, 2 * rows))
    return (long - short) / rows


def _session(server: CountedServer, shape: Shape, operation: str, writer: Writer, rows: int) -> int:
    """Both sessions find the table alike: as many rows, in as many pages."""
    there = [] if operation == "insert" else [Change(None, shape.row(key, 0)) for key in range(4 * rows)]
    with server.cluster.connect(DATABASE) as session:
        session.execute(f"TRUNCATE {shape.name}")
        if there:
            WRITERS["data layer"](session, shape, there)
        session.execute(f"VACUUM (FREEZE, ANALYZE) {shape.name}")
    changes = [OPERATIONS[operation](shape, key) for key in range(rows)]

    def work(session: Session) -> None:
        with session.transaction():
            writer(session, shape, changes)
    return server.count(DATABASE, work)
