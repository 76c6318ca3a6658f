"""The advisor's runs call the replication lag so: until now it was called the backlog"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

MEMBER = '"backlog_bytes": ', '"lag_bytes": '
STATISTIC = '"statistic_name": "BACKLOG"', '"statistic_name": "REPLICATION LAG"'


def upgrade() -> None:
    rename(MEMBER, STATISTIC)


def rename(*names: tuple[str, str]) -> None:
    """In the text of the JSON: within a string's value the quotes would be escaped."""
    for column in ("summary", "document"):
        told = f"{column}::text"
        for old, new in names:
            told = f"replace({told}, '{old}', '{new}')"
        op.execute(f"UPDATE advisor_runs SET {column} = ({told})::jsonb")  # noqa: S608


def downgrade() -> None:
    rename(MEMBER[::-1], STATISTIC[::-1])
