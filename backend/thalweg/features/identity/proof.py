"""Whether a code that somebody shows is one of the user's, and that it is of use once."""

import hmac
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import UserRow
from thalweg.features.identity import codes, repository
from thalweg.kernel.clock import now
from thalweg.kernel.context import release
from thalweg.kernel.passwords import verify_password
from thalweg.kernel.secret_box import SecretBox

Spent = Literal["code", "recovery_code"]
OF_OLDER_VERSION = "$argon2"
"""The beginning of hashes as those of passwords are."""


@dataclass(frozen=True)
class Shown:
    """A code as it was shown, with the id of the recovery code that it is."""

    code: str
    recovery_id: str | None


def recovery_hash(secrets: SecretBox, code: str) -> str:
    """A slow one would protect 59 random bits no better, and many at once would hold up everybody's login."""
    return secrets.keyed_hash("recovery code", code.encode())


async def weighed(session: AsyncSession, secrets: SecretBox, user_id: str, code: str) -> Shown:
    """Ends the transaction: the hash of a recovery code that an older version made takes its time."""
    code = codes.plain(code)
    if codes.is_authenticators(code):
        return Shown(code, None)
    row = await repository.recovery_code(session, user_id, code[: codes.BEGINNING])
    recovery_id, stored = (row.id, row.code_hash) if row else (None, None)
    await release(session)
    if stored is not None and stored.startswith(OF_OLDER_VERSION):
        right = await verify_password(code, stored)
    else:
        right = hmac.compare_digest(recovery_hash(secrets, code), stored or "")
    return Shown(code, recovery_id if right else None)


async def spend(session: AsyncSession, secrets: SecretBox, user: UserRow, shown: Shown) -> Spent | None:
    """Spends the shown code and returns its kind; None if it is wrong or was used before. `user` is locked."""
    if user.second_factor_sealed is None:
        return None
    if shown.recovery_id is not None:
        return "recovery_code" if await repository.spend_recovery_code(session, shown.recovery_id) else None
    if not codes.is_authenticators(shown.code):
        return None
    step = codes.step_of(secrets.open(user.second_factor_sealed), shown.code, now(), user.second_factor_step)
    if step is None:
        return None
    user.second_factor_step = step
    return "code"
