"""Logging in with a password. Counting and writing take one short transaction before the password is verified and one
after: no connection of the store waits for a hash."""

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.features.identity import repository
from thalweg.features.identity.login_code import begin_half_login
from thalweg.features.identity.opening import Caller, Opened, open_session
from thalweg.features.identity.schemas import SessionCreate
from thalweg.features.identity.throttle import attempt_was_right, attempt_was_wrong, begin_attempt, login_keys
from thalweg.kernel.context import Resources, release
from thalweg.kernel.passwords import verify_password
from thalweg.kernel.principal import anonymous
from thalweg.kernel.problems import Problem


async def log_in(session: AsyncSession, resources: Resources, body: SessionCreate, caller: Caller) -> Opened | str:
    """The session, or the value of the cookie with which a code completes the login. Raises wrong_credentials or
    too_many_attempts."""
    keys = login_keys(body.name, caller.address)
    async with resources.login_turn:
        await begin_attempt(session, resources.settings, keys)
        user = await repository.user_by_name(session, body.name)
        stored = user.password_hash if user else None
        await release(session)
    matches = await verify_password(body.password, stored)
    async with resources.login_turn:
        # Meanwhile the user may have been deleted, disabled, or given another password; whoever does that from here on
        # finds this session, and ends it.
        user = await repository.user_by_name(session, body.name, lock=True)
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
        answer: Opened | str
        if user.second_factor_sealed is None:
            answer = await open_session(session, resources, user, caller)
        else:
            answer = await begin_half_login(session, user, caller)
        await release(session)
        return answer
