"""Random ids and secrets."""

import hashlib
import secrets

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH = 12
TOKEN_PREFIX = "thw_"  # noqa: S105


def new_id() -> str:
    """62 bits of randomness; fits the engine's stream ids and needs no quoting in names of slots."""
    return secrets.choice(ALPHABET[:26]) + "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH - 1))


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    """For secrets of full entropy: a plain hash is enough, and looking one up stays one index read."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
