"""Logging in with a password. What is counted and written is one short transaction before the password is verified and
one after: no connection of the store waits for a hash."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.db.models import SessionRow, UserRow
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import Session, SessionCreate
from thalweg.features.identity.service import session_resource
from thalweg.features.identity.throttle import attempt_was_right, attempt_was_wrong, begin_attempt, login_keys
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources, release
from thalweg.kernel.ids import new_secret, secret_hash
from thalweg.kernel.passwords import verify_password
from thalweg.kernel.principal import Principal, Role, anonymous
from thalweg.kernel.problems import Problem


@dataclass(frozen=True)
class Caller:
    """Where a login comes from."""

    address: str | None
    user_agent: str | None
    request_id: str


async def log_in(
    session: AsyncSession, resources: Resources, body: SessionCreate, caller: Caller
) -> tuple[Session, str]:
    """The session and the cookie's value. Raises wrong_credentials or too_many_attempts."""
    keys = login_keys(body.name, caller.address)
    async with resources.login_turn:
        await begin_attempt(session, resources.settings, keys)
        user = await repository.user_by_name(session, body.name)
        stored = user.password_hash if user else None
        await release(session)
    matches = await verify_password(body.password, stored)
    async with resources.login_turn:
        # Meanwhile the user may have been deleted, disabled, or given another password.
        user = await repository.user_by_name(session, body.name, fresh=True)
        if not matches or user is None or not user.enabled or user.password_hash != stored:
            await attempt_was_wrong(session, resources.settings, keys)
            target = ("user", user.id if user else "", body.name)
            record_as(session, anonymous(body.name), caller.request_id, caller.address, "session_refused", target)
            await release(session)
            raise Problem(
                "wrong_credentials", "There is no enabled user with this name and password.",
                "Check the name and the password. An admin can set a new one: thalweg-admin set-password NAME.",
            )  # fmt: skip
        await attempt_was_right(session, keys)
        opened = await _open_session(session, resources, user, caller)
        await release(session)
        return opened


async def _open_session(
    session: AsyncSession, resources: Resources, user: UserRow, caller: Caller
) -> tuple[Session, str]:
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
    record_as(session, principal, caller.request_id, caller.address, "session_create", target)
    return session_resource(row, user), secret
