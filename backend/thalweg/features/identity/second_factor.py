"""A user's second factor: prepared, confirmed by a code, replaced, taken away. A change of it ends other sessions."""

from typing import NoReturn

from thalweg.db.audit import record
from thalweg.db.models import UserRow
from thalweg.features.identity import codes, repository
from thalweg.features.identity.policy import is_demanded
from thalweg.features.identity.proof import recovery_hash, spend, weighed
from thalweg.features.identity.schemas import (
    RecoveryCodes,
    SecondFactor,
    SecondFactorCode,
    SecondFactorDraft,
    SecondFactorProof,
)
from thalweg.features.identity.throttle import (
    attempt_was_right,
    attempt_was_wrong,
    begin_attempt,
    code_keys,
    password_keys,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.passwords import verify_password
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem, not_found


async def get_second_factor(context: Context, user_id: str) -> SecondFactor:
    if user_id != context.principal.user_id and not context.principal.role.covers(Role.ADMIN):
        raise Problem("permission_denied", "Only an admin sees somebody else's second factor.", "Ask an admin.")
    row = await _existing(context, user_id)
    return SecondFactor(
        enabled=row.second_factor_sealed is not None, since=row.second_factor_since,
        recovery_codes_left=await repository.recovery_codes_left(context.session, row.id),
        demanded=await is_demanded(context.session, row),
    )  # fmt: skip


async def prepare(context: Context, user_id: str, body: SecondFactorProof) -> SecondFactorDraft:
    """Drafts a new factor. The present one stays until a code confirms the new one."""
    row = await _proven(context, user_id, body)
    factor = codes.new_factor()
    row.second_factor_draft_sealed = context.resources.secrets.seal(factor)
    record(context, "users_prepare_second_factor", _target(row))
    address = codes.address_of(factor, row.name, context.resources.settings.console_url)
    return SecondFactorDraft(secret=factor, uri=address, qr_code=codes.picture_of(address))


async def confirm(context: Context, user_id: str, body: SecondFactorCode) -> RecoveryCodes:
    draft = (await _own(context, user_id)).second_factor_draft_sealed
    if draft is None:
        raise Problem("conflict", "No second factor was prepared.", "Prepare one: :prepare-second-factor.")
    keys = code_keys(user_id)
    await begin_attempt(context.session, context.resources.settings, keys)
    await context.release()
    row = await _existing(context, user_id, lock=True)
    step = codes.step_of(context.resources.secrets.open(draft), codes.plain(body.code), now(), None)
    if step is None:
        await _refuse(
            context, row, keys, "The code is wrong.",
            "Scan the QR code again, check the device's clock, and send the code that the app shows now.",
        )  # fmt: skip
    if row.second_factor_draft_sealed != draft:
        raise Problem("conflict", "Another second factor was prepared in the meantime.", "Confirm that one.")
    before = _state(row)
    row.second_factor_sealed, row.second_factor_draft_sealed = draft, None
    row.second_factor_step, row.second_factor_since = step, now()
    await attempt_was_right(context.session, keys)
    fresh = await _replace_recovery_codes(context, row)
    await _changed(context, row)
    record(context, "users_confirm_second_factor", _target(row), before, _state(row))
    return RecoveryCodes(codes=fresh)


async def renew_recovery_codes(context: Context, user_id: str, body: SecondFactorProof) -> RecoveryCodes:
    _check_enabled(await _own(context, user_id))
    row = await _proven(context, user_id, body)
    _check_enabled(row)
    fresh = await _replace_recovery_codes(context, row)
    record(context, "users_renew_recovery_codes", _target(row))
    return RecoveryCodes(codes=fresh)


async def remove(context: Context, user_id: str, body: SecondFactorProof) -> None:
    row = await _own(context, user_id)
    _check_enabled(row)
    if await is_demanded(context.session, row):
        raise Problem(
            "conflict", "An admin requires a second factor of you.",
            "For another device, prepare another one: it replaces this one.",
        )  # fmt: skip
    await _take_away(context, await _proven(context, user_id, body), "users_remove_second_factor")


async def reset(context: Context, user_id: str) -> None:
    if user_id == context.principal.user_id:
        raise Problem(
            "conflict", "You cannot reset your own second factor.",
            "Remove or replace it with your password and a code; or: thalweg-admin reset-second-factor NAME.",
        )  # fmt: skip
    row = await _existing(context, user_id, lock=True)
    _check_enabled(row)
    await _take_away(context, row, "users_reset_second_factor")


async def _take_away(context: Context, row: UserRow, action: str) -> None:
    before = _state(row)
    await repository.forget_second_factor(context.session, row)
    await _changed(context, row)
    record(context, action, _target(row), before, _state(row))


async def _proven(context: Context, user_id: str, body: SecondFactorProof) -> UserRow:
    """The user, locked, after the password and, where there is a second factor, a code of it. Both are always judged,
    and nobody learns which of them was wrong. Raises permission_denied or too_many_attempts."""
    stored = (await _own(context, user_id)).password_hash
    keys = password_keys(user_id) + code_keys(user_id)
    await begin_attempt(context.session, context.resources.settings, keys)
    await context.release()
    matches = await verify_password(body.current_password, stored)
    shown = await weighed(context.session, context.resources.secrets, user_id, body.code or "")
    row = await _existing(context, user_id, lock=True)
    right = matches and row.password_hash == stored
    if right and row.second_factor_sealed is not None:
        spent = await spend(context.session, context.resources.secrets, row, shown)
        right = spent is not None
        if spent == "recovery_code":
            left = {"recovery_codes_left": await repository.recovery_codes_left(context.session, row.id)}
            record(context, "users_use_recovery_code", _target(row), after=left)
    if not right:
        wrong = "The password or the code is wrong." if row.second_factor_sealed else "The password is wrong."
        await _refuse(
            context, row, keys, wrong, "Send current_password and, with a second factor, a code that was not used yet."
        )  # fmt: skip
    await attempt_was_right(context.session, keys)
    return row


async def _refuse(context: Context, row: UserRow, keys: list[str], detail: str, cure: str) -> NoReturn:
    await attempt_was_wrong(context.session, context.resources.settings, keys)
    record(context, "users_second_factor_refused", _target(row))
    await context.release()
    raise Problem("permission_denied", detail, cure)


async def _replace_recovery_codes(context: Context, row: UserRow) -> list[str]:
    """The codes to show once."""
    fresh = codes.new_recovery_codes()
    hashes = {code[: codes.BEGINNING]: recovery_hash(context.resources.secrets, codes.plain(code)) for code in fresh}
    await repository.replace_recovery_codes(context.session, row.id, hashes)
    return fresh


async def _changed(context: Context, row: UserRow) -> None:
    row.version += 1
    row.updated_at = now()
    await repository.delete_sessions(context.session, row.id, context.principal.credential_id)


async def _existing(context: Context, user_id: str, *, lock: bool = False) -> UserRow:
    row = await repository.user_by_id(context.session, user_id, lock=lock)
    if row is None:
        raise not_found("user", user_id)
    return row


async def _own(context: Context, user_id: str) -> UserRow:
    if user_id != context.principal.user_id:
        raise Problem(
            "permission_denied", "A second factor belongs to its user.",
            "An admin may reset somebody else's: :reset-second-factor.",
        )  # fmt: skip
    if context.principal.via != "session":  # a token's wrong guesses would make its owner wait
        raise Problem("permission_denied", "An API token cannot change a second factor.", "Log in, and do it there.")
    return await _existing(context, user_id)


def _check_enabled(row: UserRow) -> None:
    if row.second_factor_sealed is None:
        raise Problem("conflict", f"{row.name} has no second factor.", "There is nothing to change.")


def _state(row: UserRow) -> dict[str, bool]:
    return {"second_factor": row.second_factor_sealed is not None}


def _target(row: UserRow) -> tuple[str, str, str]:
    return ("user", row.id, row.name)
