"""Finds the principal of a request, and logs out. For logging in, see `login`."""

import hmac
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record
from thalweg.db.models import SessionRow, UserRow
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import Session
from thalweg.features.identity.users import user_resource
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context, release
from thalweg.kernel.ids import secret_hash
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem

TOUCH_INTERVAL = timedelta(minutes=1)


class SessionsAndTokens:
    """The Authenticator of `thalweg.kernel.context`."""

    async def by_cookie(self, session: AsyncSession, cookie: str, csrf: str | None, safe: bool) -> Principal | None:
        found = await repository.session_by_secret(session, secret_hash(cookie), now())
        if found is None:
            return None
        row, confined = found
        if not safe and not hmac.compare_digest((csrf or "").encode(), row.csrf_token.encode()):
            raise Problem(
                "csrf_token_invalid", "A change with a session's cookie needs its X-CSRF-Token header.",
                "Read csrf_token from GET /api/v1/session and send it as X-CSRF-Token.",
            )  # fmt: skip
        return Principal(row.user.id, row.user.name, Role(row.user.role), "session", row.id, confined)

    async def by_token(self, session: AsyncSession, token: str) -> Principal | None:
        at = now()
        row = await repository.token_by_secret(session, secret_hash(token), at)
        if row is None or not row.user.enabled:
            return None
        if row.last_used_at is None or row.last_used_at < at - TOUCH_INTERVAL:
            await repository.touch_token(session, row.id, at)
            await release(session)  # else the token would be locked until the request ends
        # A token never outranks its user, also when the user's role was lowered after it was made.
        role = min(Role(row.role), Role(row.user.role), key=lambda role: role.rank)
        return Principal(row.user.id, row.user.name, role, "token", row.id)

    async def still_valid(self, session: AsyncSession, principal: Principal) -> bool:
        if principal.via == "system":
            return True
        valid = repository.session_is_valid if principal.via == "session" else repository.token_is_valid
        return await valid(session, principal.credential_id, now())


async def current_session(context: Context) -> Session:
    user = await repository.user_by_id(context.session, context.principal.user_id)
    if user is None:
        raise Problem("authentication_required", "The user was deleted.", "Log in as another user.")
    if context.principal.via == "session":
        row = await context.session.get_one(SessionRow, context.principal.credential_id)
        return session_resource(row, user, context.principal.confined)
    return Session(user=user_resource(user), csrf_token=None, expires_at=None, second_factor_missing=False)


async def log_out(context: Context) -> None:
    if context.principal.via != "session":
        raise Problem("permission_denied", "An API token has no session to end.", "Revoke the token instead.")
    row = await context.session.get_one(SessionRow, context.principal.credential_id)
    await context.session.delete(row)
    record(context, "session_delete", ("user", context.principal.user_id, context.principal.name))


def session_resource(row: SessionRow, user: UserRow, confined: bool) -> Session:
    return Session(
        user=user_resource(user), csrf_token=row.csrf_token, expires_at=row.expires_at, second_factor_missing=confined
    )
