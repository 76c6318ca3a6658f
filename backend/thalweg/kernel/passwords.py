"""Password hashes: argon2id. One takes tens of milliseconds and 64 MiB, so few are computed at once, off the event
loop; the others wait for their turn."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from pwdlib import PasswordHash

from thalweg.kernel.outside import outside

AT_ONCE_MAX = 2
_hasher = PasswordHash.recommended()
computing_threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="password")
# Verified when the user does not exist, so that the answer takes as long as for one that does.
_DUMMY = _hasher.hash("thalweg")


async def hash_password(password: str) -> str:
    outside("a password hash")
    return await asyncio.get_running_loop().run_in_executor(computing_threads, _hasher.hash, password)


async def verify_password(password: str, stored: str | None) -> bool:
    outside("a password hash")
    matches = await asyncio.get_running_loop().run_in_executor(
        computing_threads, _hasher.verify, password, stored or _DUMMY
    )
    return matches and stored is not None
