"""SQL of users, their second factors, sessions, tokens and login throttles."""

from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import contains_eager, joinedload

from thalweg.db.models import (
    AccessPolicyRow,
    HalfLoginRow,
    LoginThrottleRow,
    RecoveryCodeRow,
    SessionRow,
    TokenRow,
    UserRow,
)
from thalweg.kernel.principal import Demand, Role

POLICY = 1


async def user_by_name(session: AsyncSession, name: str, *, lock: bool = False) -> UserRow | None:
    query = select(UserRow).where(UserRow.name == name).execution_options(populate_existing=lock)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def user_by_id(session: AsyncSession, user_id: str, *, lock: bool = False) -> UserRow | None:
    return await session.get(UserRow, user_id, with_for_update=lock or None, populate_existing=lock)


async def name_is_taken(session: AsyncSession, name: str, except_id: str | None = None) -> bool:
    query = select(UserRow.id).where(UserRow.name == name, UserRow.id != (except_id or ""))
    return (await session.scalars(query)).first() is not None


async def other_admins(session: AsyncSession, user_id: str) -> int:
    """Enabled admins besides this user. Locks all admins, so that two cannot remove each other at once."""
    query = select(UserRow).where(UserRow.role == Role.ADMIN, UserRow.enabled).with_for_update()
    return sum(1 for admin in await session.scalars(query) if admin.id != user_id)


def all_users() -> Select[UserRow]:
    return select(UserRow)


def _lacks_second_factor() -> ColumnElement[bool]:
    """Whether the query's user needs a second factor and has none."""
    policy = select(AccessPolicyRow.require_second_factor).scalar_subquery()
    demanded = or_(policy == Demand.EVERYBODY, and_(policy == Demand.ADMINS, UserRow.role == Role.ADMIN))
    return and_(UserRow.second_factor_sealed.is_(None), func.coalesce(demanded, False))


async def session_by_secret(session: AsyncSession, secret_hash: str, at: datetime) -> tuple[SessionRow, bool] | None:
    """The session of an enabled user, and whether the user lacks a required second factor."""
    query = (
        select(SessionRow, _lacks_second_factor())
        .join(SessionRow.user)
        .options(contains_eager(SessionRow.user))
        .where(SessionRow.secret_hash == secret_hash, SessionRow.expires_at > at, UserRow.enabled)
    )
    found = (await session.execute(query)).one_or_none()
    return None if found is None else (found[0], found[1])


async def delete_sessions(session: AsyncSession, user_id: str, except_id: str = "") -> None:
    """Also logins that are half done."""
    await session.execute(delete(HalfLoginRow).where(HalfLoginRow.user_id == user_id))
    await session.execute(delete(SessionRow).where(SessionRow.user_id == user_id, SessionRow.id != except_id))


async def delete_expired_sessions(session: AsyncSession, at: datetime) -> None:
    await session.execute(delete(SessionRow).where(SessionRow.expires_at <= at))


async def user_halfway(session: AsyncSession, secret_hash: str, at: datetime, *, lock: bool) -> UserRow | None:
    """The user whose login waits for a code."""
    query = (
        select(UserRow)
        .join(HalfLoginRow, HalfLoginRow.user_id == UserRow.id)
        .where(
            HalfLoginRow.secret_hash == secret_hash,
            HalfLoginRow.expires_at > at,
            UserRow.enabled,
            UserRow.second_factor_sealed.is_not(None),
        )
    )
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    return (await session.scalars(query)).one_or_none()


async def delete_half_login(session: AsyncSession, secret_hash: str) -> None:
    await session.execute(delete(HalfLoginRow).where(HalfLoginRow.secret_hash == secret_hash))


async def delete_expired_half_logins(session: AsyncSession, at: datetime) -> None:
    await session.execute(delete(HalfLoginRow).where(HalfLoginRow.expires_at <= at))


async def recovery_code(session: AsyncSession, user_id: str, beginning: str) -> RecoveryCodeRow | None:
    query = select(RecoveryCodeRow).where(RecoveryCodeRow.user_id == user_id, RecoveryCodeRow.beginning == beginning)
    return (await session.scalars(query)).one_or_none()


async def spend_recovery_code(session: AsyncSession, code_id: str) -> bool:
    """False when somebody else was quicker."""
    spent = delete(RecoveryCodeRow).where(RecoveryCodeRow.id == code_id).returning(RecoveryCodeRow.id)
    return (await session.scalars(spent)).one_or_none() is not None


async def recovery_codes_left(session: AsyncSession, user_id: str) -> int:
    query = select(func.count()).select_from(RecoveryCodeRow).where(RecoveryCodeRow.user_id == user_id)
    return (await session.scalars(query)).one()


async def replace_recovery_codes(session: AsyncSession, user_id: str, hashes: dict[str, str]) -> None:
    """`hashes` by the codes' beginnings."""
    await session.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.user_id == user_id))
    session.add_all(
        RecoveryCodeRow(user_id=user_id, beginning=beginning, code_hash=code_hash)
        for beginning, code_hash in hashes.items()
    )


async def forget_second_factor(session: AsyncSession, user: UserRow) -> None:
    user.second_factor_sealed = user.second_factor_draft_sealed = None
    user.second_factor_since = user.second_factor_step = None
    await replace_recovery_codes(session, user.id, {})


async def access_policy(session: AsyncSession, *, lock: bool = False) -> AccessPolicyRow:
    """The one that was stored, or what holds before."""
    row = await session.get(AccessPolicyRow, POLICY, with_for_update=lock or None)
    return row or AccessPolicyRow(id=POLICY, require_second_factor=Demand.NOBODY, version=1)


async def token_by_secret(session: AsyncSession, secret_hash: str, at: datetime) -> TokenRow | None:
    query = (
        select(TokenRow)
        .options(joinedload(TokenRow.user))
        .where(
            TokenRow.secret_hash == secret_hash,
            TokenRow.revoked_at.is_(None),
            (TokenRow.expires_at.is_(None)) | (TokenRow.expires_at > at),
        )
    )
    return (await session.scalars(query)).one_or_none()


async def session_is_valid(session: AsyncSession, session_id: str, at: datetime) -> bool:
    query = (
        select(SessionRow.id)
        .join(SessionRow.user)
        .where(SessionRow.id == session_id, SessionRow.expires_at > at, UserRow.enabled, ~_lacks_second_factor())
    )
    return (await session.scalars(query)).first() is not None


async def token_is_valid(session: AsyncSession, token_id: str, at: datetime) -> bool:
    query = (
        select(TokenRow.id)
        .join(TokenRow.user)
        .where(
            TokenRow.id == token_id,
            TokenRow.revoked_at.is_(None),
            (TokenRow.expires_at.is_(None)) | (TokenRow.expires_at > at),
            UserRow.enabled,
        )
    )
    return (await session.scalars(query)).first() is not None


async def touch_token(session: AsyncSession, token_id: str, at: datetime) -> None:
    """Waits for nobody: where another request has the row locked, that one writes it down."""
    free = select(TokenRow.id).where(TokenRow.id == token_id).with_for_update(skip_locked=True)
    await session.execute(
        update(TokenRow).where(TokenRow.id.in_(free)).values(last_used_at=at),
        execution_options={"synchronize_session": False},
    )


async def token_by_id(session: AsyncSession, token_id: str) -> TokenRow | None:
    query = select(TokenRow).options(joinedload(TokenRow.user)).where(TokenRow.id == token_id)
    return (await session.scalars(query)).one_or_none()


async def revoke_with_descendants(session: AsyncSession, token_id: str, at: datetime) -> None:
    """Revokes a token with all tokens created by it: they may be in the same wrong hands."""
    family = select(TokenRow.id).where(TokenRow.id == token_id).cte(recursive=True)
    family = family.union(select(TokenRow.id).where(TokenRow.made_by_id == family.c.id))
    revoked = update(TokenRow).where(TokenRow.id.in_(select(family.c.id)), TokenRow.revoked_at.is_(None))
    await session.execute(revoked.values(revoked_at=at), execution_options={"synchronize_session": False})


async def revoke_tokens(session: AsyncSession, user_id: str, kept_id: str, at: datetime) -> None:
    """All of a user's, but for one and those that it was made with: it would fall with them."""
    kept = select(TokenRow.id, TokenRow.made_by_id).where(TokenRow.id == kept_id).cte(recursive=True)
    kept = kept.union(select(TokenRow.id, TokenRow.made_by_id).where(TokenRow.id == kept.c.made_by_id))
    ended = [TokenRow.user_id == user_id, TokenRow.revoked_at.is_(None), TokenRow.id.not_in(select(kept.c.id))]
    revoked = update(TokenRow).where(*ended).values(revoked_at=at)
    await session.execute(revoked, execution_options={"synchronize_session": False})


def tokens_of(user_id: str | None) -> Select[TokenRow]:
    query = select(TokenRow).options(joinedload(TokenRow.user))
    return query if user_id is None else query.where(TokenRow.user_id == user_id)


async def blocked_until(session: AsyncSession, keys: list[str], at: datetime) -> datetime | None:
    query = select(func.max(LoginThrottleRow.blocked_until)).where(
        LoginThrottleRow.key.in_(keys), LoginThrottleRow.blocked_until > at
    )
    return (await session.scalars(query)).one()


async def count_failure(session: AsyncSession, key: str, at: datetime, forget_before: datetime) -> LoginThrottleRow:
    """Counts one more failure; failures before `forget_before` no longer count."""
    fresh = insert(LoginThrottleRow).values(key=key, failures=1, last_failed_at=at, blocked_until=at)
    statement = fresh.on_conflict_do_update(
        index_elements=[LoginThrottleRow.key],
        set_={
            "failures": case((LoginThrottleRow.last_failed_at > forget_before, LoginThrottleRow.failures + 1), else_=1),
            "last_failed_at": at,
        },
    ).returning(LoginThrottleRow)
    return (await session.scalars(statement, execution_options={"populate_existing": True})).one()


async def failures_of(session: AsyncSession, keys: list[str]) -> list[LoginThrottleRow]:
    """Locked, in the order of their keys."""
    query = select(LoginThrottleRow).where(LoginThrottleRow.key.in_(keys)).order_by(LoginThrottleRow.key)
    return list(await session.scalars(query.with_for_update().execution_options(populate_existing=True)))


async def take_back_failure(session: AsyncSession, keys: list[str]) -> None:
    await session.execute(
        update(LoginThrottleRow)
        .where(LoginThrottleRow.key.in_(keys), LoginThrottleRow.failures > 0)
        .values(failures=LoginThrottleRow.failures - 1)
    )


async def forget_old_failures(session: AsyncSession, before: datetime) -> None:
    """Forgets failures of names and addresses, which anybody can make up. Skips those that another attempt uses now."""
    row = LoginThrottleRow
    old = (
        select(row.key).where(row.last_failed_at < before, row.blocked_until < before).with_for_update(skip_locked=True)
    )
    await session.execute(delete(row).where(row.key.in_(old)), execution_options={"synchronize_session": False})


async def forget_failures(session: AsyncSession, keys: list[str]) -> None:
    await session.execute(delete(LoginThrottleRow).where(LoginThrottleRow.key.in_(keys)))


async def forget_failures_from_everywhere(session: AsyncSession, prefix: str) -> None:
    """Those of keys that are the prefix and a network. Names may have spaces, and one may begin another key's."""
    key = LoginThrottleRow.key
    network = func.substr(key, len(prefix) + 1)
    await session.execute(
        delete(LoginThrottleRow).where(key.startswith(prefix, autoescape=True), network.not_like("% %")),
        execution_options={"synchronize_session": False},
    )
