"""The second step of a login: the code, from the browser that has shown the password a moment ago."""

from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.db.models import HalfLoginRow, UserRow
from thalweg.features.identity import repository
from thalweg.features.identity.opening import Caller, Opened, open_session
from thalweg.features.identity.proof import spend, weighed
from thalweg.features.identity.throttle import (
    address_key,
    attempt_was_right,
    attempt_was_wrong,
    begin_attempt,
    code_keys,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources, release
from thalweg.kernel.ids import new_secret, secret_hash
from thalweg.kernel.principal import anonymous
from thalweg.kernel.problems import Problem

HALF_LOGIN_SECONDS = 300


async def begin_half_login(session: AsyncSession, user: UserRow, caller: Caller) -> str:
    """The value of the cookie that the second step needs."""
    await repository.delete_expired_half_logins(session, now())
    secret = new_secret()
    expires_at = now() + timedelta(seconds=HALF_LOGIN_SECONDS)
    session.add(HalfLoginRow(user_id=user.id, secret_hash=secret_hash(secret), expires_at=expires_at))
    target = ("user", user.id, user.name)
    record_as(session, anonymous(user.name), caller.request_id, caller.address, "session_code_wanted", target)
    return secret


async def verify_code(
    session: AsyncSession, resources: Resources, cookie: str | None, code: str, caller: Caller
) -> Opened:
    """Raises login_expired, wrong_code or too_many_attempts."""
    async with resources.login_turn:
        user_id = (await _halfway(session, cookie)).id
        keys = [*code_keys(user_id), address_key(caller.address)]
        await begin_attempt(session, resources.settings, keys)
        await release(session)
    shown = await weighed(session, resources.secrets, user_id, code)
    async with resources.login_turn:
        # Meanwhile the user may have been disabled, the factor reset, the code used.
        user = await _halfway(session, cookie, lock=True)
        spent = await spend(session, resources.secrets, user, shown)
        target = ("user", user.id, user.name)
        if spent is None:
            await attempt_was_wrong(session, resources.settings, keys)
            principal = anonymous(user.name)
            lacking = {"lacking": "second_factor"}
            record_as(
                session, principal, caller.request_id, caller.address, "session_refused", target, after=lacking
            )  # fmt: skip
            await release(session)
            raise Problem(
                "wrong_code", "It is not one of the user's current codes, or it was used before.",
                "Each code works once: wait for the next one, and check the device's clock. Without the device, "
                "use a recovery code; an admin can reset the second factor.",
            )  # fmt: skip
        await attempt_was_right(session, keys)
        await repository.delete_half_login(session, secret_hash(cookie or ""))
        opened = await open_session(session, resources, user, caller, spent)
        await release(session)
        return opened


async def _halfway(session: AsyncSession, cookie: str | None, *, lock: bool = False) -> UserRow:
    user = await repository.user_halfway(session, secret_hash(cookie or ""), now(), lock=lock)
    if user is None:
        raise Problem(
            "login_expired", "No login waits for a code here: it took too long, or has ended.",
            "Begin again with the name and the password, and send back the cookie that answers them.",
        )  # fmt: skip
    return user
