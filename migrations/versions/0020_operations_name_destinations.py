"""Operations keep the name of the destination that they are about: it may be gone"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

KNOWN = """
UPDATE operations SET destination_name = databases.name
  FROM destinations AS one JOIN databases ON databases.id = one.database_id
 WHERE operations.target_id = one.stream_id AND operations.destination_id = one.id
"""


def upgrade() -> None:
    op.add_column("operations", sa.Column("destination_name", sa.Text(), nullable=True))
    op.execute(KNOWN)


def downgrade() -> None:
    op.drop_column("operations", "destination_name")
