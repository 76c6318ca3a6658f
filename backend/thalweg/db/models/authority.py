"""The certificate authority that gives engines their identities."""

from datetime import datetime

from sqlalchemy import CheckConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base


class AuthorityRow(Base):
    """One row at most: `id` is 1. The private key is sealed like passwords of databases."""

    __tablename__ = "authority"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    certificate: Mapped[str]
    key_sealed: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
