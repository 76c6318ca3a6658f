"""Password hashes: argon2id, off the event loop since one takes tens of milliseconds."""

import asyncio

from pwdlib import PasswordHash

_hasher = PasswordHash.recommended()
# Verified when the user does not exist, so that the answer takes as long as for one that does.
_DUMMY = _hasher.hash("thalweg")


async def hash_password(password: str) -> str:
    return await asyncio.to_thread(_hasher.hash, password)


async def verify_password(password: str, stored: str | None) -> bool:
    matches = await asyncio.to_thread(_hasher.verify, password, stored or _DUMMY)
    return matches and stored is not None
