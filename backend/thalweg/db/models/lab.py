"""The lab's actions on the demo's databases."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base


class LabActionRow(Base):
    """One that is wanted, or whose end is not carried out yet. The collector deletes the row once all is as before.

    Requests write what is wanted, the collector what it has seen.
    """

    __tablename__ = "lab_actions"

    action: Mapped[str] = mapped_column(primary_key=True)
    rate: Mapped[int | None]
    """The rate of the load, in transactions a second."""
    delay_ms: Mapped[int | None]
    """The delay of the slow network, each way."""
    begun_at: Mapped[datetime]
    begun_by: Mapped[str]
    until: Mapped[datetime]
    ended: Mapped[bool]
    """A user has ended it before its time."""
    in_effect_at: Mapped[datetime | None]
    gone: Mapped[bool]
    """It was in effect, and was ended at the database: by the advisor's cure, say."""
    failure: Mapped[str | None]
    """Why the collector's last try failed."""
