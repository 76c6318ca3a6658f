"""Directories and ports that tests may use: PostgreSQL's unprivileged user must reach the former."""

import os
import pwd
import shutil
import socket
import tempfile
from pathlib import Path


def postgres_user() -> str | None:
    """The user to run PostgreSQL as, or None when this process may run it itself. PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    return os.environ.get("THALWEG_PG_USER", "postgres")


def as_postgres(command: list[str]) -> list[str]:
    user = postgres_user()
    return ["runuser", "-u", user, "--", *command] if user else command


def make_workspace(prefix: str) -> Path:
    """A new directory that PostgreSQL's user owns, under THALWEG_TEST_DIR or the system's temporary directory."""
    path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=os.environ.get("THALWEG_TEST_DIR")))
    path.chmod(0o755)
    give_to_postgres(path)
    return path


def give_to_postgres(path: Path) -> None:
    user = postgres_user()
    if user:
        entry = pwd.getpwnam(user)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def remove_workspace(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


_handed_out: set[int] = set()


def free_port() -> int:
    """A TCP port of loopback that nobody listens on now. THALWEG_TEST_PORTS=55560-55569 limits the choice.

    The default lies below Linux's range for outgoing connections, so none of those can take the port in between.
    """
    low, high = _own_share(*(int(part) for part in os.environ.get("THALWEG_TEST_PORTS", "24000-31999").split("-")))
    start = os.getpid() % (high - low + 1)
    for number in range(high - low + 1):
        port = low + (start + number) % (high - low + 1)
        if port not in _handed_out and _can_bind(port):
            _handed_out.add(port)
            return port
    raise RuntimeError(f"no port from {low} to {high} is free")


def _own_share(low: int, high: int) -> tuple[int, int]:
    """The part of a range that is this process's among pytest's workers: what one finds free another may hand out."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = (high - low + 1) // workers
    return low + number * share, low + (number + 1) * share - 1


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
