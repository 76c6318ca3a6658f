"""Users, their sessions and API tokens. Of secrets, only hashes are stored; a second factor's is sealed: codes are made
from it."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base, Identified, Versioned


class UserRow(Versioned, Base):
    __tablename__ = "users"

    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    enabled: Mapped[bool] = mapped_column(default=True)
    password_hash: Mapped[str]
    second_factor_sealed: Mapped[str | None]
    """None: the password alone lets in."""
    second_factor_draft_sealed: Mapped[str | None]
    """Shown to the user, and of no effect until a code confirms it."""
    second_factor_since: Mapped[datetime | None]
    second_factor_step: Mapped[int | None] = mapped_column(BigInteger)
    """The step of the last accepted code: neither it nor an earlier one is accepted again."""


class SessionRow(Identified, Base):
    __tablename__ = "sessions"

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    secret_hash: Mapped[str] = mapped_column(unique=True)
    csrf_token: Mapped[str]
    expires_at: Mapped[datetime]
    address: Mapped[str | None]
    user_agent: Mapped[str | None]
    user: Mapped[UserRow] = relationship(lazy="raise")


class HalfLoginRow(Identified, Base):
    """A login that has shown the password but not yet the code."""

    __tablename__ = "half_logins"

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    secret_hash: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime]


class RecoveryCodeRow(Identified, Base):
    """One that is used is deleted. `beginning`, in clear, says which of them to compare: the hash of one that an older
    version made takes long."""

    __tablename__ = "recovery_codes"
    __table_args__ = (UniqueConstraint("user_id", "beginning"),)

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    beginning: Mapped[str]
    code_hash: Mapped[str]


class AccessPolicyRow(Base):
    """One row at most: `id` is 1."""

    __tablename__ = "access_policy"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    require_second_factor: Mapped[str]
    version: Mapped[int] = mapped_column(default=1, server_default="1")


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
    """Failed logins by name and network, and by network; `key` is `name:... from ...`, `address:...`, `password:...` or
    `code:...`."""

    __tablename__ = "login_throttles"

    key: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int]
    last_failed_at: Mapped[datetime]
    blocked_until: Mapped[datetime]
