"""Users, their sessions and API tokens. Of secrets, only hashes are stored."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base, Identified, Versioned


class UserRow(Versioned, Base):
    __tablename__ = "users"

    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    enabled: Mapped[bool] = mapped_column(default=True)
    password_hash: Mapped[str]


class SessionRow(Identified, Base):
    __tablename__ = "sessions"

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    secret_hash: Mapped[str] = mapped_column(unique=True)
    csrf_token: Mapped[str]
    expires_at: Mapped[datetime]
    address: Mapped[str | None]
    user_agent: Mapped[str | None]
    user: Mapped[UserRow] = relationship(lazy="raise")


class TokenRow(Identified, Base):
    __tablename__ = "tokens"

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    role: Mapped[str]
    prefix: Mapped[str]
    secret_hash: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    made_by_id: Mapped[str | None] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    """The token that it was made with: it does not outlive that one."""
    user: Mapped[UserRow] = relationship(lazy="raise")


class LoginThrottleRow(Base):
    """Failed logins by name and by address; `key` is `name:...` or `address:...`."""

    __tablename__ = "login_throttles"

    key: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int]
    last_failed_at: Mapped[datetime]
    blocked_until: Mapped[datetime]
