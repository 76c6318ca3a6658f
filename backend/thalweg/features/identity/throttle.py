"""Slows guessing down. An attempt counts as failed from its beginning: one that never ends has counted, too."""

from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.features.identity import repository
from thalweg.kernel.clock import now
from thalweg.kernel.networks import network_of
from thalweg.kernel.problems import Problem
from thalweg.kernel.settings import Settings

FAILURES_KEPT = timedelta(minutes=30)
WAIT_MAX = timedelta(minutes=5)
# Many people may share an address, so it may fail more often than one name.
ADDRESS_ALLOWANCE = 10
ADDRESS = "address:"


def login_keys(name: str, address: str | None) -> list[str]:
    """The name only together with where it is tried from: somebody else could keep its owner out otherwise."""
    return [f"{_tried_name(name)}{network_of(address)}", address_key(address)]


def _tried_name(name: str) -> str:
    return f"name:{name} from "


def address_key(address: str | None) -> str:
    return f"{ADDRESS}{network_of(address)}"


def password_keys(user_id: str) -> list[str]:
    """Keys of a logged-in user who must show the current password."""
    return [f"password:{user_id}"]


def code_keys(user_id: str) -> list[str]:
    """Apart from the password's: whoever knows it must not have the wrong codes forgotten by showing it again."""
    return [f"code:{user_id}"]


async def begin_attempt(session: AsyncSession, settings: Settings, keys: list[str]) -> None:
    """To be committed before the attempt is made. Raises too_many_attempts."""
    at = now()
    until = await repository.blocked_until(session, keys, at)
    if until is not None:
        raise _too_many((until - at).total_seconds())
    await repository.forget_old_failures(session, at - FAILURES_KEPT)
    for key in sorted(keys):
        row = await repository.count_failure(session, key, at, at - FAILURES_KEPT)
        if row.blocked_until > now():  # by another attempt at the same time
            raise _too_many((row.blocked_until - at).total_seconds())
        row.blocked_until = at + _wait(settings, key, row.failures)


def _wait(settings: Settings, key: str, failures: int) -> timedelta:
    excess = failures - settings.login_attempts_free * (ADDRESS_ALLOWANCE if key.startswith(ADDRESS) else 1)
    return min(WAIT_MAX, timedelta(seconds=2 ** min(excess, 20))) if excess >= 0 else timedelta()


async def attempt_was_wrong(session: AsyncSession, settings: Settings, keys: list[str]) -> None:
    """The wait counts from the answer: on a busy host it may come late."""
    at = now()
    for row in await repository.failures_of(session, keys):
        wait = _wait(settings, row.key, row.failures)
        if wait:
            row.blocked_until = max(row.blocked_until, at + wait)


async def attempt_was_right(session: AsyncSession, keys: list[str]) -> None:
    """Forgets the failures of the name or user, but not those of the address: its owner may have an account."""
    await repository.forget_failures(session, [key for key in keys if not key.startswith(ADDRESS)])
    await repository.take_back_failure(session, [key for key in keys if key.startswith(ADDRESS)])


async def forget_tries(session: AsyncSession, user_id: str, name: str) -> None:
    """Called when somebody else has set a user's password: what was tried before was tried at another one."""
    await repository.forget_failures_from_everywhere(session, _tried_name(name))
    await repository.forget_failures(session, password_keys(user_id))


def _too_many(remaining: float) -> Problem:
    seconds = max(1, round(remaining))
    return Problem(
        "too_many_attempts", f"After several failed attempts the next may come in {seconds} s.",
        f"Wait {seconds} s, then try again.", headers={"Retry-After": str(seconds)},
    )  # fmt: skip
