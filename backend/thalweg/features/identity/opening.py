"""A session begins."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.db.models import SessionRow, UserRow
from thalweg.features.identity import repository
from thalweg.features.identity.policy import lacks_second_factor
from thalweg.features.identity.proof import Spent
from thalweg.features.identity.schemas import Session
from thalweg.features.identity.service import session_resource
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.ids import new_secret, secret_hash
from thalweg.kernel.principal import Principal, Role


@dataclass(frozen=True)
class Caller:
    """The origin of a login."""

    address: str | None
    user_agent: str | None
    request_id: str


@dataclass(frozen=True)
class Opened:
    """A session and the value of its cookie."""

    session: Session
    cookie: str


async def open_session(
    session: AsyncSession, resources: Resources, user: UserRow, caller: Caller, spent: Spent | None = None
) -> Opened:
    await repository.delete_expired_sessions(session, now())
    secret = new_secret()
    row = SessionRow(
        user_id=user.id, secret_hash=secret_hash(secret), csrf_token=new_secret(), address=caller.address,
        expires_at=now() + timedelta(seconds=resources.settings.session_seconds),
        user_agent=(caller.user_agent or "")[:200].replace("\x00", "") or None,
    )  # fmt: skip
    session.add(row)
    await session.flush()
    principal = Principal(user.id, user.name, Role(user.role), "session", row.id)
    target = ("user", user.id, user.name)
    if spent == "recovery_code":
        left = {"recovery_codes_left": await repository.recovery_codes_left(session, user.id)}
        record_as(
            session, principal, caller.request_id, caller.address, "users_use_recovery_code", target, after=left
        )  # fmt: skip
    record_as(session, principal, caller.request_id, caller.address, "session_create", target)
    return Opened(session_resource(row, user, await lacks_second_factor(session, user)), secret)
