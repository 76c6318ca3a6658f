"""The real thalwegd, where a test needs what only it can do: move rows, park transactions, drop slots."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 30
LOG_CHARACTERS = 30_000
# In a mount namespace of its own: a file system of $1 at $2, then the rest. It is gone with the program.
ON_A_SMALL_DISK = 'mount -t tmpfs -o "size=$1" thalweg-test "$2" && shift 2 && exec "$@"'


def program() -> Path:
    path = Path(os.environ.get("THALWEG_ENGINE", ROOT / "build" / "release" / "src" / "daemon" / "thalwegd"))
    if not path.exists():
        raise RuntimeError(f"{path} is missing: run scripts/build.sh, or let THALWEG_ENGINE name a thalwegd.")
    return path


def namespace() -> list[str]:
    """A command that runs a program in its own mount namespace; if the tests do not run as root, in its own user
    namespace as well."""
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]


def can_mount() -> bool:
    """Some containers let nobody mount, in whatever namespace."""
    tried = [*namespace(), "mount", "-t", "tmpfs", "thalweg-test", "/mnt"]
    return subprocess.run(tried, check=False, capture_output=True).returncode == 0


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """(certificate, key) for 127.0.0.1, PEM; the certificate is its own authority."""
    certificate, key = directory / "engine.crt", directory / "engine.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(key), "-out", str(certificate),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


class RealEngine:
    """Owner: one test. Can be killed and started again on the same port, with what it has on its disk or without."""

    def __init__(
        self,
        directory: Path,
        tls: tuple[Path, Path] | None = None,
        environment: dict[str, str] | None = None,
        disk_mib: int | None = None,
    ) -> None:
        """With `disk_mib` its state lies on a file system of its own, which is gone when it stops."""
        self.directory = directory
        self.disk_mib = disk_mib
        self.tls = tls
        self.environment = environment or {}
        self.port = free_port()
        self.propagation_port = free_port()
        self.token = secrets.token_urlsafe(32)
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory / "log"
        self.log_printed = 0
        directory.mkdir(parents=True)
        self.token_file = directory / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(self.token)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        tls = ["--tls-cert", str(self.tls[0]), "--tls-key", str(self.tls[1])] if self.tls else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self._on_its_disk(), str(program()), "--listen", f"127.0.0.1:{self.port}",
                    "--state-dir", str(self.directory / "state"),
                    "--propagation-listen", f"127.0.0.1:{self.propagation_port}",
                    "--token-file", str(self.token_file), *tls,
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.environment},
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("thalwegd does not answer:\n" + self.log.read_text()[-2000:])
            time.sleep(0.05)

    def _on_its_disk(self) -> list[str]:
        if self.disk_mib is None:
            return []
        state = self.directory / "state"
        state.mkdir(exist_ok=True)
        return [*namespace(), "sh", "-c", ON_A_SMALL_DISK, "sh", f"{self.disk_mib}m", str(state)]

    def stop(self) -> None:
        """As kill -9 does it, or the power: whatever it was doing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self._print_log()

    def _print_log(self) -> None:
        """Prints the log's new lines, which pytest shows only if the test fails."""
        with self.log.open("rb") as log:
            log.seek(self.log_printed)
            new = log.read()
        self.log_printed += len(new)
        sys.stdout.write(f"the log of {self.directory.name}:\n{new.decode(errors='replace')[-LOG_CHARACTERS:]}\n")

    def stream_ids(self) -> list[str]:
        """The streams that it runs now, as it reports them."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"{self.url}/v1/status", headers=headers, verify=self.tls is None)
        return [stream["id"] for stream in answer.json()["streams"]]

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", verify=self.tls is None).is_success
        except httpx.HTTPError:
            return False
