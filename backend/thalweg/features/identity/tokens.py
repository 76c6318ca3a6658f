"""API tokens: shown once, stored as a hash, never stronger than their owner."""

from datetime import timedelta

from thalweg.db.audit import record, snapshot
from thalweg.db.models import TokenRow, UserRow
from thalweg.db.pages import page_by_name
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import Token, TokenCreate, TokenCreated
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.ids import TOKEN_PREFIX, new_secret, secret_hash
from thalweg.kernel.models import FieldProblem, Page
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem, not_found

PREFIX_SHOWN = 10


def make_token(user: UserRow, body: TokenCreate) -> tuple[TokenRow, str]:
    """The row to store and the secret to show once."""
    secret = TOKEN_PREFIX + new_secret()
    expires_at = None if body.expires_in_days is None else now() + timedelta(days=body.expires_in_days)
    row = TokenRow(
        user_id=user.id, user=user, name=body.name, role=body.role, prefix=secret[:PREFIX_SHOWN],
        secret_hash=secret_hash(secret), expires_at=expires_at,
    )  # fmt: skip
    return row, secret


def _resource(row: TokenRow) -> Token:
    return Token(
        id=row.id, user_id=row.user_id, user_name=row.user.name, name=row.name, role=Role(row.role),
        prefix=row.prefix, created_at=row.created_at, expires_at=row.expires_at,
        last_used_at=row.last_used_at, revoked_at=row.revoked_at,
    )  # fmt: skip


async def list_tokens(context: Context, limit: int, cursor: str | None) -> Page[Token]:
    everybodys = context.principal.role.covers(Role.ADMIN)
    query = repository.tokens_of(None if everybodys else context.principal.user_id)
    rows, following = await page_by_name(context.session, query, TokenRow.name, TokenRow.id, limit, cursor)
    return Page[Token](items=[_resource(row) for row in rows], next_cursor=following)


async def create_token(context: Context, body: TokenCreate) -> Created:
    if not context.principal.role.covers(body.role):
        raise Problem(
            "permission_denied", f"A token with the role {body.role} would outrank you.",
            f"Choose at most the role {context.principal.role}.",
        )  # fmt: skip
    user = await context.session.get_one(UserRow, context.principal.user_id)
    row, secret = make_token(user, body)
    if context.principal.via == "token":
        maker = await context.session.get_one(TokenRow, context.principal.credential_id)
        if "expires_in_days" not in body.model_fields_set and maker.expires_at is not None:
            row.expires_at = min(row.expires_at or maker.expires_at, maker.expires_at)
        _check_outlived(maker, row)
        row.made_by_id = maker.id
    context.session.add(row)
    await context.session.flush()
    await context.session.refresh(row, ["created_at"])
    token = _resource(row)
    record(context, "tokens_create", ("token", row.id, row.name), after=snapshot(token))
    return Created(TokenCreated(token=token, secret=secret), headers={"Cache-Control": "no-store"})


def _check_outlived(maker: TokenRow, row: TokenRow) -> None:
    if maker.expires_at is None or (row.expires_at is not None and row.expires_at <= maker.expires_at):
        return
    days = (maker.expires_at - now()).days
    message = f"It would outlive the token that makes it, which ends on {maker.expires_at:%Y-%m-%d}."
    cure = f"Send expires_in_days of {days} at most." if days >= 1 else "Log in with a password to create it."
    raise Problem(
        "permission_denied", message, cure,
        errors=[FieldProblem(pointer="/expires_in_days", code="outlives_its_maker", message=message, cure=cure)],
    )  # fmt: skip


async def revoke_token(context: Context, token_id: str) -> None:
    row = await repository.token_by_id(context.session, token_id)
    visible = row is not None and (
        row.user_id == context.principal.user_id or context.principal.role.covers(Role.ADMIN)
    )
    if row is None or not visible:
        raise not_found("token", token_id)
    if row.revoked_at is None:
        record(context, "tokens_revoke", ("token", row.id, row.name), before=snapshot(_resource(row)))
        await repository.revoke_with_descendants(context.session, row.id, now())
