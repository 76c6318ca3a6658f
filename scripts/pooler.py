"""PgBouncer before a test's PostgreSQL server. Not a part of the product."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60


@contextmanager
def pgbouncer(
    port: int, server: str, users: dict[str, str], run_as: str | None, database: str = "", **settings: str
) -> Iterator[None]:
    """In transaction mode with a pool of one session, on `port` of loopback, while the context lasts.

    `server` is a conninfo's host and port, `users` their passwords there, `database` further words of its line.
    `run_as` is an unprivileged user: PgBouncer refuses root.
    """
    directory = Path(tempfile.mkdtemp(prefix="thalweg-test-pooler-"))
    lines = {
        "listen_addr": "127.0.0.1", "listen_port": port, "auth_type": "trust", "pool_mode": "transaction",
        "auth_file": directory / "users", "default_pool_size": 1, "unix_socket_dir": "", **settings,
    }  # fmt: skip
    (directory / "users").write_text("".join(f'"{user}" "{password}"\n' for user, password in users.items()))
    (directory / "ini").write_text(
        f"[databases]\n* = {server} {database}\n[pgbouncer]\n"
        + "".join(f"{name} = {value}\n" for name, value in lines.items())
    )
    command = ["pgbouncer", str(directory / "ini")]
    if run_as and os.geteuid() == 0:
        command = ["runuser", "-u", run_as, "--", *command]
        for path in (directory, *directory.iterdir()):
            shutil.chown(path, run_as)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(port, process, directory / "log")
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)
        shutil.rmtree(directory)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PgBouncer does not answer: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            return
