"""Logging in and out, and who a request comes from."""

import hmac
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record, record_as
from thalweg.db.models import SessionRow, UserRow
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import Session, SessionCreate
from thalweg.features.identity.users import user_resource
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context, Resources
from thalweg.kernel.ids import new_secret, secret_hash
from thalweg.kernel.passwords import verify_password
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem

FAILURES_KEPT = timedelta(minutes=30)
WAIT_MAX = timedelta(minutes=5)
# Many people may share an address, so it may fail more often than one name.
ADDRESS_ALLOWANCE = 10
TOUCH_INTERVAL = timedelta(minutes=1)


class SessionsAndTokens:
    """The Authenticator of `thalweg.kernel.context`."""

    async def by_cookie(self, session: AsyncSession, cookie: str, csrf: str | None, safe: bool) -> Principal | None:
        row = await repository.session_by_secret(session, secret_hash(cookie), now())
        if row is None or not row.user.enabled:
            return None
        if not safe and not hmac.compare_digest((csrf or "").encode(), row.csrf_token.encode()):
            raise Problem(
                "csrf_token_invalid", "A change with a session's cookie needs its X-CSRF-Token header.",
                "Read csrf_token from GET /api/v1/session and send it as X-CSRF-Token.",
            )  # fmt: skip
        return Principal(row.user.id, row.user.name, Role(row.user.role), "session", row.id)

    async def by_token(self, session: AsyncSession, token: str) -> Principal | None:
        at = now()
        row = await repository.token_by_secret(session, secret_hash(token), at)
        if row is None or not row.user.enabled:
            return None
        if row.last_used_at is None or row.last_used_at < at - TOUCH_INTERVAL:
            await repository.touch_token(session, row.id, at)
        # A token never outranks its user, also when the user's role was lowered after it was made.
        role = min(Role(row.role), Role(row.user.role), key=lambda role: role.rank)
        return Principal(row.user.id, row.user.name, role, "token", row.id)

    async def still_valid(self, session: AsyncSession, principal: Principal) -> bool:
        if principal.via == "system":
            return True
        valid = repository.session_is_valid if principal.via == "session" else repository.token_is_valid
        return await valid(session, principal.credential_id, now())


async def log_in(
    session: AsyncSession,
    resources: Resources,
    body: SessionCreate,
    address: str | None,
    user_agent: str | None,
    request_id: str,
) -> tuple[Session, str]:
    """The session and the cookie's value. Raises wrong_credentials or too_many_attempts."""
    keys = [f"name:{body.name}", f"address:{address or 'unknown'}"]
    await _refuse_when_blocked(session, keys)
    user = await repository.user_by_name(session, body.name)
    if not await verify_password(body.password, user.password_hash if user else None) or not user or not user.enabled:
        await _count_failures(resources, keys)
        raise Problem(
            "wrong_credentials", "There is no enabled user with this name and password.",
            "Check the name and the password. An admin can set a new one: thalweg-admin set-password NAME.",
        )  # fmt: skip
    await repository.forget_failures(session, keys[:1])
    await repository.delete_expired_sessions(session, now())
    secret = new_secret()
    row = SessionRow(
        user_id=user.id, secret_hash=secret_hash(secret), csrf_token=new_secret(), address=address,
        expires_at=now() + timedelta(seconds=resources.settings.session_seconds),
        user_agent=(user_agent or "")[:200].replace("\x00", "") or None,
    )  # fmt: skip
    session.add(row)
    await session.flush()
    principal = Principal(user.id, user.name, Role(user.role), "session", row.id)
    record_as(session, principal, request_id, address, "session_create", ("user", user.id, user.name))
    return _session_resource(row, user), secret


async def _refuse_when_blocked(session: AsyncSession, keys: list[str]) -> None:
    at = now()
    until = await repository.blocked_until(session, keys, at)
    if until is not None:
        seconds = max(1, round((until - at).total_seconds()))
        raise Problem(
            "too_many_attempts", f"After several failed logins the next may come in {seconds} s.",
            f"Wait {seconds} s, then try again.", headers={"Retry-After": str(seconds)},
        )  # fmt: skip


async def _count_failures(resources: Resources, keys: list[str]) -> None:
    """In a transaction of its own: the request's is rolled back by the failure."""
    at = now()
    free = resources.settings.login_attempts_free
    async with resources.sessions() as session:
        for key in sorted(keys):
            row = await repository.count_failure(session, key, at, at - FAILURES_KEPT)
            allowance = free * (ADDRESS_ALLOWANCE if key.startswith("address:") else 1)
            excess = row.failures - allowance
            if excess >= 0:
                row.blocked_until = at + min(WAIT_MAX, timedelta(seconds=2 ** min(excess, 20)))
        await session.commit()


async def current_session(context: Context) -> Session:
    user = await repository.user_by_id(context.session, context.principal.user_id)
    if user is None:
        raise Problem("authentication_required", "The user was deleted.", "Log in as another user.")
    if context.principal.via == "session":
        row = await context.session.get_one(SessionRow, context.principal.credential_id)
        return _session_resource(row, user)
    return Session(user=user_resource(user), csrf_token=None, expires_at=None)


async def log_out(context: Context) -> None:
    if context.principal.via != "session":
        raise Problem("permission_denied", "An API token has no session to end.", "Revoke the token instead.")
    row = await context.session.get_one(SessionRow, context.principal.credential_id)
    await context.session.delete(row)
    record(context, "session_delete", ("user", context.principal.user_id, context.principal.name))


def _session_resource(row: SessionRow, user: UserRow) -> Session:
    return Session(user=user_resource(user), csrf_token=row.csrf_token, expires_at=row.expires_at)
