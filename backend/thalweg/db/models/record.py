"""Records beside the resources: operations, the audit log, idempotency keys."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base, Identified
from thalweg.kernel.lifecycle import OperationState


class OperationRow(Identified, Base):
    __tablename__ = "operations"
    __table_args__ = (Index("ix_operations_created_at_id", "created_at", "id"),)

    kind: Mapped[str]
    target_type: Mapped[str]
    target_id: Mapped[str] = mapped_column(index=True)
    target_name: Mapped[str]
    destination_id: Mapped[str | None]
    """The one of a stream's destinations that it is about; None: the stream as a whole."""
    destination_name: Mapped[str | None]
    """Its database's name at the time of the request: the destination may be gone."""
    table: Mapped[dict[str, Any] | None] = mapped_column("of_table")
    """The one table of the stream that it is about: schema and table, and `copied_at` as it was before."""
    state: Mapped[OperationState]
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int | None] = mapped_column(BigInteger)
    unit: Mapped[str]
    error: Mapped[dict[str, Any] | None]
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """It can be finished only after the capture engine has acknowledged this desired revision."""
    requested_by: Mapped[str]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class AuditRow(Base):
    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_running", "id", postgresql_where=text("(after ->> 'state') = 'RUNNING'")),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    actor_id: Mapped[str | None]
    actor_name: Mapped[str]
    via: Mapped[str]
    credential_id: Mapped[str | None]
    action: Mapped[str]
    target_type: Mapped[str]
    target_id: Mapped[str] = mapped_column(index=True)
    target_name: Mapped[str]
    before: Mapped[dict[str, Any] | None]
    after: Mapped[dict[str, Any] | None]
    request_id: Mapped[str]
    address: Mapped[str | None]


class AuditChangesRow(Base):
    """A part of the changes of a transaction that an entry has discarded."""

    __tablename__ = "audit_changes"

    audit_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True)
    first: Mapped[int] = mapped_column(primary_key=True)
    """How many of the entry's come before this part."""
    changes: Mapped[list[dict[str, Any]]]


class IdempotencyRow(Base):
    """The first answer to a request, sealed: it may hold a secret that is shown once."""

    __tablename__ = "idempotency_keys"

    principal_id: Mapped[str] = mapped_column(primary_key=True)
    """The credential's: another one of the same user may be allowed less."""
    key: Mapped[str] = mapped_column(primary_key=True)
    request_hash: Mapped[str]
    status: Mapped[int | None]
    headers: Mapped[dict[str, Any] | None]
    body_sealed: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), index=True)
