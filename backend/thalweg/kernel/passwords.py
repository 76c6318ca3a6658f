"""Password hashes: argon2id. One takes tens of milliseconds and 64 MiB, so few are computed at once, off the event
loop; the others wait for their turn."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pwdlib import PasswordHash

from thalweg.kernel.outside import outside
from thalweg.kernel.problems import Problem

Result = TypeVar("Result")
AT_ONCE_MAX = 2
WAITING_MAX = 60
"""Their last one waits for a few seconds; more than that is no crowd that logs in."""
_hasher = PasswordHash.recommended()
computing_threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="password")
# Verified when the user does not exist, so that the answer takes as long as for one that does.
_DUMMY = _hasher.hash("thalweg")


async def hash_password(password: str) -> str:
    return await _computed(_hasher.hash, password)


async def verify_password(password: str, stored: str | None) -> bool:
    return await _computed(_hasher.verify, password, stored or _DUMMY) and stored is not None


async def _computed(work: Callable[..., Result], *arguments: str) -> Result:
    """Raises too_many_attempts where too many wait already."""
    outside("a password hash")
    if computing_threads._work_queue.qsize() >= WAITING_MAX:
        raise Problem(
            "too_many_attempts", "Too many passwords are being checked at the moment.", "Try again in a few seconds.",
            headers={"Retry-After": "5"},
        )  # fmt: skip
    return await asyncio.get_running_loop().run_in_executor(computing_threads, work, *arguments)
