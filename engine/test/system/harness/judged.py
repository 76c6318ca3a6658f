"""Transactions that note where they began, and which rule has judged each."""

from harness.engine import parse_lsn
from harness.scene import Scene

BEGINNINGS = """
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, region text,
                     lsn pg_lsn DEFAULT pg_current_wal_insert_lsn());
"""


def assert_judged(scene: Scene, told: list[tuple[str, str]], database: str = "") -> None:
    """Of each transaction, which noted where it began, the row has come whose region the rule wants that was in effect
    at its commit. `told`: the positions from which each region's rule is in effect."""
    rules = [(parse_lsn(position), region) for position, region in told]
    written = [parse_lsn(str(begin)) for (begin,) in
               scene.at_source("SELECT min(lsn) FROM orders GROUP BY (id + 1) / 2 ORDER BY (id + 1) / 2")]
    found = scene.destination.sql(database or scene.database, "SELECT (id + 1) / 2, region FROM orders ORDER BY id")
    assert [int(str(pair)) for pair, _ in found] == list(range(1, len(written) + 1)), "one row of each transaction"
    unsure = 0
    for (number, region), begin, end in zip(found, written, [*written[1:], rules[-1][0] + (1 << 60)], strict=True):
        possible = [wanted for position, wanted in rules if position <= begin][-1:]
        possible += [wanted for position, wanted in rules if begin < position < end]
        assert region in possible, f"transaction {number}, begun at {begin:X}, with the rules {told}"
        unsure += len(possible) > 1
    assert unsure <= len(told)
