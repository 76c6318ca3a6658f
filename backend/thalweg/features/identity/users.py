"""Users: made and changed by admins. There is always an enabled admin left."""

from thalweg.db.audit import record, snapshot
from thalweg.db.models import UserRow
from thalweg.db.pages import page_by_name
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import PasswordChange, User, UserCreate, UserUpdate
from thalweg.features.identity.throttle import (
    attempt_was_right,
    attempt_was_wrong,
    begin_attempt,
    forget_tries,
    password_keys,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.idempotency import Created
from thalweg.kernel.models import Page
from thalweg.kernel.password_strength import check_password
from thalweg.kernel.passwords import hash_password, verify_password
from thalweg.kernel.principal import Role, UserRole
from thalweg.kernel.problems import Problem, name_taken, not_found


def user_resource(row: UserRow) -> User:
    return User(
        id=row.id, name=row.name, role=UserRole(row.role), enabled=row.enabled, created_at=row.created_at,
        updated_at=row.updated_at, etag=etag_of(row.version), second_factor=row.second_factor_sealed is not None,
    )  # fmt: skip


async def list_users(context: Context, limit: int, cursor: str | None) -> Page[User]:
    rows, following = await page_by_name(
        context.session, repository.all_users(), UserRow.name, UserRow.id, limit, cursor
    )
    return Page[User](items=[user_resource(row) for row in rows], next_cursor=following)


async def hashed(context: Context, body: UserCreate) -> str:
    await context.release()
    await check_password(body.password, body.name, "/password", context.resources.settings)
    return await hash_password(body.password)


async def create_user(context: Context, body: UserCreate, password_hash: str) -> Created:
    if await repository.name_is_taken(context.session, body.name):
        raise name_taken("user", body.name)
    row = UserRow(name=body.name, role=body.role, enabled=True, password_hash=password_hash)
    context.session.add(row)
    await context.session.flush()
    await context.session.refresh(row)
    user = user_resource(row)
    record(context, "users_create", ("user", row.id, row.name), after=snapshot(user))
    return Created(user, headers={"Location": f"/api/v1/users/{row.id}", "ETag": user.etag})


async def _existing(context: Context, user_id: str, *, lock: bool = False) -> UserRow:
    row = await repository.user_by_id(context.session, user_id, lock=lock)
    if row is None:
        raise not_found("user", user_id)
    return row


async def get_user(context: Context, user_id: str) -> User:
    return user_resource(await _existing(context, user_id))


async def update_user(context: Context, user_id: str, body: UserUpdate, if_match: str | None) -> User:
    row = await _existing(context, user_id, lock=True)
    check_if_match(if_match, row.version)
    before = snapshot(user_resource(row))
    loses_admin = (body.role not in (None, UserRole.ADMIN) or body.enabled is False) and row.role == Role.ADMIN
    if loses_admin:
        await _keep_an_admin(context, row)
    if body.name is not None and body.name != row.name:
        if await repository.name_is_taken(context.session, body.name, row.id):
            raise name_taken("user", body.name)
        row.name = body.name
    if body.role is not None:
        row.role = body.role
    if body.enabled is not None:
        row.enabled = body.enabled
        if not body.enabled:
            await repository.delete_sessions(context.session, row.id)
    row.version += 1
    row.updated_at = now()
    await context.session.flush()
    user = user_resource(row)
    record(context, "users_update", ("user", row.id, row.name), before, snapshot(user))
    return user


async def delete_user(context: Context, user_id: str) -> None:
    row = await _existing(context, user_id, lock=True)
    if row.id == context.principal.user_id:
        raise Problem("conflict", "You cannot delete yourself.", "Let another admin do it.")
    await _keep_an_admin(context, row)
    await context.session.delete(row)
    record(context, "users_delete", ("user", row.id, row.name), before=snapshot(user_resource(row)))


async def _keep_an_admin(context: Context, row: UserRow) -> None:
    if row.role == Role.ADMIN and row.enabled and await repository.other_admins(context.session, row.id) == 0:
        raise Problem("conflict", "This is the last enabled admin.", "Make another user an admin first.")


async def change_password(context: Context, user_id: str, body: PasswordChange) -> None:
    own = user_id == context.principal.user_id
    if not own and not context.principal.role.covers(Role.ADMIN):
        raise Problem("permission_denied", "Only an admin may change somebody else's password.", "Ask an admin.")
    row = await _existing(context, user_id)
    name, stored = row.name, row.password_hash
    if own:
        await _check_current(context, row, body.current_password or "")
    await context.release()
    await check_password(body.new_password, name, "/new_password", context.resources.settings)
    password_hash = await hash_password(body.new_password)
    row = await _existing(context, user_id, lock=True)
    if own and row.password_hash != stored:
        raise Problem(
            "conflict", "The password was changed in the meantime.", "Log in with the new one, and try again."
        )
    row.password_hash = password_hash
    row.second_factor_draft_sealed = None  # whoever prepared it may have known the old password only
    row.version += 1
    row.updated_at = now()
    await repository.delete_sessions(context.session, row.id, context.principal.credential_id)
    if not own:
        await forget_tries(context.session, row.id, row.name)
    if body.revoke_tokens:
        await repository.revoke_tokens(context.session, row.id, context.principal.credential_id, now())
    after = {"tokens_revoked": True} if body.revoke_tokens else None
    record(context, "users_change_password", ("user", row.id, row.name), after=after)


async def _check_current(context: Context, row: UserRow, password: str) -> None:
    """Raises permission_denied, or too_many_attempts: somebody else may sit at the open session."""
    keys = password_keys(row.id)
    await begin_attempt(context.session, context.resources.settings, keys)
    await context.release()
    if not await verify_password(password, row.password_hash):
        await attempt_was_wrong(context.session, context.resources.settings, keys)
        record(context, "users_change_password_refused", ("user", row.id, row.name))
        await context.release()
        raise Problem(
            "permission_denied",
            "The current password is wrong.",
            "Send your current password as current_password.",
        )
    await attempt_was_right(context.session, keys)
