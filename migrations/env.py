"""Runs migrations on a connection that the caller hands over, or on the store of the settings."""

from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection
from thalweg.db.models import Base
from thalweg.kernel.settings import Settings


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    engine = create_engine(Settings().store_url)
    with engine.connect() as connection:
        run(connection)
    engine.dispose()
