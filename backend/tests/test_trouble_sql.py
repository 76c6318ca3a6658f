"""The statements within a table's cure, apart from its words."""

import pytest

from thalweg.features.streams.presentation import _sql_in

FULL = 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;'
KEY = 'ALTER TABLE "public"."orders" REPLICA IDENTITY DEFAULT;'
ODD = 'ALTER TABLE "shop; x"."say ""hi""" REPLICA IDENTITY USING INDEX "Orders; code";'


@pytest.mark.parametrize(
    ("cure", "sql"),
    [
        (f"At the source, run {ODD}", ODD),
        (f"At the source, run {FULL} Old rows then go into the WAL whole. Or add a primary key, and run {KEY}", FULL),
        (f"At the source, run {FULL} {ODD} Do so for the 2 others, too.", f"{FULL}\n{ODD}"),
        ("Copy the table again: the destination's rows are deleted and the new table's are copied.", None),
    ],
)
def test_the_first_way_alone_is_sql(cure: str, sql: str | None) -> None:
    assert _sql_in(cure) == sql
