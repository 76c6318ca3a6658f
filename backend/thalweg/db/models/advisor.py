"""The advisor's runs, their schedules, cures that were tried, and the policy."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, Text, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base, Versioned


class AdvisorRunRow(Base):
    """`document` is the whole run as the API shows it; `summary` the part of it that lists show."""

    __tablename__ = "advisor_runs"
    __table_args__ = (
        Index("ix_advisor_runs_stream_ids", "stream_ids", postgresql_using="gin"),
        Index("ix_advisor_runs_at", "at"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    reason: Mapped[str]
    detail: Mapped[str | None]
    """Details of the reason: the schedule's, the alert's or the cure's."""
    requested_by: Mapped[str]
    name: Mapped[str | None]
    note: Mapped[str | None]
    kept: Mapped[bool] = mapped_column(default=False)
    """Not removed by the retention."""
    version: Mapped[int] = mapped_column(default=1, server_default="1")
    scope: Mapped[dict[str, Any]]
    stream_ids: Mapped[list[str]] = mapped_column(ARRAY(Text))
    summary: Mapped[dict[str, Any]]
    document: Mapped[dict[str, Any]] = mapped_column(deferred=True)


class AdvisorScheduleRow(Versioned, Base):
    __tablename__ = "advisor_schedules"

    name: Mapped[str] = mapped_column(unique=True)
    stream_id: Mapped[str | None] = mapped_column(ForeignKey("streams.id", ondelete="CASCADE"), index=True)
    """None: all paths."""
    interval_seconds: Mapped[int]
    window_seconds: Mapped[int]
    enabled: Mapped[bool] = mapped_column(default=True)
    next_at: Mapped[datetime]
    last_at: Mapped[datetime | None]
    last_run_id: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("advisor_runs.id", ondelete="SET NULL"), index=True
    )
    last_error: Mapped[str | None]


class AdvisorCureRow(Base):
    """A change that was made for a finding, of parameters or an index, and its result."""

    __tablename__ = "advisor_cures"

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    run_id: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("advisor_runs.id", ondelete="SET NULL"), index=True
    )
    """The run whose finding it cures."""
    finding: Mapped[dict[str, Any]]
    stream_id: Mapped[str] = mapped_column(ForeignKey("streams.id", ondelete="CASCADE"), index=True)
    path_id: Mapped[str]
    parameters_before: Mapped[dict[str, Any]]
    parameters_after: Mapped[dict[str, Any]]
    destination_id: Mapped[str | None]
    """The destination whose own parameters they are. None: the stream's."""
    database_id: Mapped[str | None] = mapped_column(ForeignKey("databases.id", ondelete="SET NULL"), index=True)
    """The database in which `sql` runs. None: it is a change of parameters."""
    sql: Mapped[str | None]
    index_name: Mapped[dict[str, Any] | None]
    operation_id: Mapped[str | None]
    """The last long work for it: applying, or taking it back."""
    state: Mapped[str]
    applied_by: Mapped[str]
    before_run_id: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("advisor_runs.id", ondelete="SET NULL"), index=True
    )
    after_run_id: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("advisor_runs.id", ondelete="SET NULL"), index=True
    )
    measure_at: Mapped[datetime | None]
    """The time of the second snapshot. None: there is none to take."""
    measure_seconds: Mapped[int]
    outcome: Mapped[str | None]
    undone_at: Mapped[datetime | None]


class AdvisorPolicyRow(Base):
    """One row: `id` is 1."""

    __tablename__ = "advisor_policy"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    retention_days: Mapped[int] = mapped_column(default=90)
    runs_max: Mapped[int] = mapped_column(default=20000)
    idle_threshold: Mapped[float] = mapped_column(default=50.0)
    flow_control_threshold: Mapped[float] = mapped_column(default=50.0)
    event_threshold: Mapped[float] = mapped_column(default=15.0)
    version: Mapped[int] = mapped_column(default=1, server_default="1")
