"""Secrets at rest: Fernet (AES-128-CBC with HMAC-SHA256) under one key from a file or the environment."""

import base64
import hashlib
import hmac
import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from thalweg.kernel.settings import Settings


class SecretKeyError(RuntimeError):
    """The key is missing, malformed, or not the one that encrypted a value."""


class SecretBox:
    """Immutable: thread-safe."""

    def __init__(self, key: bytes) -> None:
        try:
            self._fernet = Fernet(key)
        except ValueError as error:
            raise SecretKeyError("The secret key is not 32 bytes in URL-safe base64.") from error
        self._key = base64.urlsafe_b64decode(key)

    def seal(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken as error:
            raise SecretKeyError(
                "A stored secret cannot be decrypted: the secret key is not the one that encrypted it."
            ) from error

    def keyed_hash(self, purpose: str, content: bytes) -> str:
        """The content cannot be guessed by it without the key, nor compared with that of another purpose."""
        key = HKDF(SHA256(), length=32, salt=None, info=f"thalweg {purpose}".encode()).derive(self._key)
        return hmac.new(key, content, hashlib.sha256).hexdigest()


def load_secret_box(settings: Settings) -> SecretBox:
    """Reads the key; makes the file with mode 0600 when there is none yet. Raises SecretKeyError."""
    if settings.secret_key is not None:
        return SecretBox(settings.secret_key.get_secret_value().encode())
    path = settings.secret_key_file
    if not path.exists():
        _make_key_file(path)
    try:
        return SecretBox(path.read_bytes().strip())
    except OSError as error:
        raise SecretKeyError(f"The secret key file {path} cannot be read: {error.strerror}.") from error


def _make_key_file(path: Path) -> None:
    """Several processes may start at once: the one that links its file first wins, the others read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(Fernet.generate_key())
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
