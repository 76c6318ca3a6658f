"""Instructions of a destination's backend for a row, by ways to write it (Wong et al. 2009, table I)."""

import argparse
from collections.abc import Callable

from bench.instructions import CountedServer, Session
from bench.report import Report
from bench.row_writers import WRITERS, Change, Shape, Writer

DATABASE = "counted"
HOT = Shape("hot", integers=2, texts=2, fillfactor=50)
LARGE = Shape("large", integers=2, texts=1, large_bytes=1500)
SHAPES = (HOT, Shape("medium", integers=10, texts=9), Shape("many", integers=50, texts=49), LARGE)
TRANSACTION_ROWS = 50
HOT_ROWS = TRANSACTION_ROWS  # that all updates of the hot table are of
MOVED = 1_000_000  # added to a key that is changed
FILLED = 4  # times the rows of the shorter session are there, where rows are changed
METHOD = """callgrind counts the instructions of one backend (inside PostgresMain; what the kernel does is not counted).
Figure: instructions for a row, from two sessions of which one writes twice as many rows, so connecting and preparing
are left out. Both write in transactions of 50 rows, whose commits count. Tables: hot with 5 small columns and a
fillfactor of 50, of which 50 rows are updated again and again; medium with 20 small columns, many with 100; large
with 4 small columns and one of 1 500 bytes. Primary key on the first, no other index. An update gives all columns new
values. Ways: a statement a row with its values as literals; prepared statements with binary values in a pipeline; one
statement over arrays for a transaction; the data layer, row frames of up to 96 KiB a call. The ratio: the smallest of
the first over the last, but for the large table, where the bytes of the value cost all ways alike."""


def insert(shape: Shape, key: int) -> Change:
    return Change(None, shape.row(key, 1))


def update(shape: Shape, key: int) -> Change:
    hot = key % HOT_ROWS if shape is HOT else key
    return Change(hot, shape.row(hot, key))


def update_key(shape: Shape, key: int) -> Change:
    return Change(key, shape.row(key + MOVED, 2))


def delete(_shape: Shape, key: int) -> Change:
    return Change(key, None)


OPERATIONS: dict[str, Callable[[Shape, int], Change]] = {"insert": insert, "update": update,
                                                         "update of the key": update_key, "delete": delete}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=500, help="of the shorter session")


def run(arguments: argparse.Namespace) -> None:
    report = Report("table1", arguments)
    report.method(f"Sessions of {arguments.rows} and {2 * arguments.rows} rows. {METHOD}")
    ratios = []
    with CountedServer() as server:
        server.cluster.make_database(DATABASE)
        server.cluster.sql(DATABASE, "CREATE EXTENSION thalweg_datalayer")
        for shape in SHAPES:
            _make(server, shape, FILLED * arguments.rows)
        report.say(f"{'table':<8} {'operation':<18} " + " ".join(f"{name:>20}" for name in WRITERS) + f" {'fewer':>7}")
        for shape in SHAPES:
            for operation in OPERATIONS:
                found = {name: _instructions(server, shape, operation, writer, arguments.rows)
                         for name, writer in WRITERS.items()}
                first, *_, last = found.values()
                figures = {name.replace(",", "").replace(" ", "_"): round(count) for name, count in found.items()}
                report.figure(f"{shape.name:<8} {operation:<18} "
                              + " ".join(f"{count:>20,.0f}" for count in found.values())
                              + f" {100 * (1 - last / first):>5.0f} %",
                              workload=f"{shape.name}, {operation}", **figures)
                if shape is not LARGE:
                    ratios.append(first / last)
    report.ratio(min(ratios))


def _make(server: CountedServer, shape: Shape, rows: int) -> None:
    server.cluster.sql(DATABASE, shape.create(), f"CREATE TABLE {shape.name}_filled (LIKE {shape.name})")
    with server.cluster.connect(DATABASE) as session, \
            session.cursor().copy(f"COPY {shape.name}_filled FROM STDIN") as copy:
        for key in range(rows):
            copy.write_row(shape.row(key, 0))


def _instructions(server: CountedServer, shape: Shape, operation: str, writer: Writer, rows: int) -> float:
    short, long = (_session(server, shape, operation, writer, count) for count in (rows, 2 * rows))
    return (long - short) / rows


def _session(server: CountedServer, shape: Shape, operation: str, writer: Writer, rows: int) -> int:
    """Each finds the table as it was filled at the beginning, or empty for inserts."""
    fill = f"INSERT INTO {shape.name} SELECT * FROM {shape.name}_filled" if operation != "insert" else "SELECT"
    server.cluster.sql(DATABASE, f"TRUNCATE {shape.name}", fill, f"VACUUM (FREEZE, ANALYZE) {shape.name}")
    changes = [OPERATIONS[operation](shape, key) for key in range(rows)]

    def work(session: Session) -> None:
        write = writer(session, shape)
        for start in range(0, rows, TRANSACTION_ROWS):
            with session.transaction():
                write(changes[start:start + TRANSACTION_ROWS])
    return server.count(DATABASE, work)
