"""`make up` with settings.env, and with services that already run: the shell functions of scripts/."""

import http.server
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.real_engine import make_certificate
from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
# As scripts/up.sh begins; every service is the caller's, and all lies in the test's own folder.
PRELUDE = f"""
set -euo pipefail
source {ROOT}/scripts/settings.sh
for part in steps secrets users clusters daemons services; do source {ROOT}/scripts/lib/$part.sh; done
service_user() {{ id -un; }}
services_directory() {{ echo "$THALWEG_HOME"; }}
code_directory() {{ echo "$THALWEG_ROOT"; }}
"""


def run(home: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
    return subprocess.run(
        ["bash", "-c", PRELUDE + script], env={**kept, "THALWEG_HOME": str(home), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def exported(output: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in output.splitlines() if line.startswith("THALWEG_"))


def test_settings_of_the_file_reach_the_services(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    (tmp_path / "settings.env").write_text(
        f"# ours\n\nTHALWEG_TLS_CERTIFICATE_FILE={certificate}\nTHALWEG_TLS_KEY_FILE={key}\n"
        f"THALWEG_ENGINE_CA_FILE={certificate}\nTHALWEG_ALERTS_KEPT_DAYS=7\nTHALWEG_PUBLIC_URL=https://a=b"
    )
    for service in ("api", "collector"):
        done = run(tmp_path, f"control_plane_environment {service}; env", THALWEG_ALERTS_KEPT_DAYS="8")
        found = exported(done.stdout)
        assert found["THALWEG_API_URL"].startswith("https://"), done.stderr
        assert found["THALWEG_ALERTS_KEPT_DAYS"] == "8", "the environment wins"
        assert found["THALWEG_PUBLIC_URL"] == "https://a=b", "a last line needs no line end"
        for name, file in (("TLS_KEY_FILE", key), ("ENGINE_CA_FILE", certificate)):
            handed = Path(found[f"THALWEG_{name}"])
            assert handed.read_bytes() == file.read_bytes()
            assert handed.stat().st_mode & 0o077 == 0 or handed == file
    assert exported(run(tmp_path, "env").stdout)["THALWEG_ALERTS_KEPT_DAYS"] == "7", "and so those of the engine"


def test_the_command_line_is_led_to_the_stack_of_its_settings(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    (home / "secrets").mkdir(parents=True)
    (home / "secrets/api-token").write_text("t")
    certificate, _ = make_certificate(tmp_path)
    found = exported(run(home, 'write_cli_environment; env -i bash -c ". \\"$THALWEG_HOME/cli.env\\"; env"',
                         THALWEG_PORT_OFFSET="100").stdout)  # fmt: skip
    assert found == {"THALWEG_URL": "http://127.0.0.1:8742", "THALWEG_TOKEN_FILE": f"{home}/secrets/api-token"}
    (home / "settings.env").write_text(f"THALWEG_API_PORT=9000\nTHALWEG_TLS_CERTIFICATE_FILE={certificate}\n")
    run(home, "write_cli_environment")
    lines = (home / "cli.env").read_text().splitlines()
    assert lines[0::2] == ["export THALWEG_URL=https://127.0.0.1:9000", f"export THALWEG_CA_FILE={certificate}"]
    with (home / "settings.env").open("a") as settings:
        settings.write(f"THALWEG_CA_FILE={tmp_path}/ca.crt\n")
    run(home, "write_cli_environment")
    assert (home / "cli.env").read_text().splitlines()[2] == f"export THALWEG_CA_FILE={tmp_path}/ca.crt"


def test_a_line_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_text("export THALWEG_PUBLIC_URL=https://a.example\n")
    done = run(tmp_path, "echo went on")
    assert (done.returncode, done.stdout) == (2, "")
    assert "THALWEG_NAME=value" in done.stderr


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_text("THALWEG_ENGINE_CA_FILE=/nowhere/ca.pem\n")
    done = run(tmp_path, "step 'start collector' 'read the log' control_plane_environment collector")
    assert done.returncode == 1
    assert "cure: correct THALWEG_ENGINE_CA_FILE in" in done.stdout.rpartition("──")[2]


def test_a_database_of_the_demo_is_tested_once_it_is_registered(tmp_path: Path) -> None:
    """Else the console would say that nobody has tested it."""
    asked: list[str] = []
    known: list[dict[str, object]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"items": known, "next_cursor": None})

        def do_POST(self) -> None:
            asked.append(self.path)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
            if self.path.endswith("/test"):
                known[0]["tested_at"] = "2026-11-27T12:00:00Z"
            else:
                known.append({**body, "id": "d1", "tested_at": None})
            self.answer(known[0])

        def answer(self, document: object) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "token").write_text("t")
    environment = {
        **os.environ, "THALWEG_API_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "THALWEG_TOKEN_FILE": str(tmp_path / "token"),
    }  # fmt: skip
    command = [
        sys.executable,
        str(ROOT / "scripts/rest.py"),
        "database",
        "shop",
        "127.0.0.1",
        "5432",
        "demo",
        "thalweg",
    ]
    for _ in range(2):
        subprocess.run(command, env=environment, input="secret\n", text=True, check=True)
    known.clear()
    asks = [*command[:2], "has-stream", "shop to warehouse"]
    done = subprocess.run(asks, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", ""), "a script asks; no user is told an error"
    server.shutdown()
    server.server_close()
    assert asked == ["/api/v1/databases", "/api/v1/databases/d1/test"]


@pytest.fixture
def https_port(tmp_path: Path) -> Generator[int, None, None]:
    """Somebody who answers by https."""
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    (tmp_path / "healthz").touch()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_api_with_another_scheme_is_not_a_taken_port(tmp_path: Path, https_port: int) -> None:
    script = "daemon_pid() { echo $$; }; step 'start api' 'port must be free' start_api"
    done = run(tmp_path, script, THALWEG_API_PORT=str(https_port))
    assert done.returncode == 1, done.stdout
    assert "THALWEG_TLS_CERTIFICATE_FILE" in done.stdout.rpartition("── cure:")[2]
    assert "port must be free" not in done.stdout


def test_what_runs_older_code_or_settings_is_stopped(tmp_path: Path) -> None:
    started = """
    trap 'stop_daemon api 5; stop_daemon collector 5' EXIT
    for name in api collector; do
      start_daemon "$name" sleep 600
      service_version "$name" >"$THALWEG_RUN/$name.version"
    done
    """
    assert run(tmp_path, started + "stop_older; daemon_pid api; daemon_pid collector").stdout.startswith("note: none\n")
    code = run(
        tmp_path, started + "echo older >$THALWEG_RUN/api.version; stop_older; daemon_pid collector; daemon_pid api"
    )
    assert (code.stdout.splitlines()[0], code.returncode) == ("note: api", 1), code.stderr
    settings = run(tmp_path, started + "echo THALWEG_LOG_LEVEL=debug >$THALWEG_HOME/settings.env; stop_older")
    assert settings.stdout.startswith("note: collector api\n"), settings.stderr


def test_logs_of_services_are_their_callers_alone(tmp_path: Path) -> None:
    """A database's message may quote a row."""
    log = tmp_path / "log" / "service-quiet.log"
    log.parent.mkdir()
    log.write_text("of an earlier version\n")
    log.chmod(0o644)
    done = run(tmp_path, 'start_daemon quiet sleep 600 && kill "$(daemon_pid quiet)"')
    assert done.returncode == 0, done.stderr
    assert log.stat().st_mode & 0o077 == 0
    assert "of an earlier version" in log.read_text()


@pytest.fixture
def store() -> Generator[dict[str, str], None, None]:
    """The environment of a stack that has only a store, which does not run. Root's server runs as another user, who
    cannot enter tmp_path."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        assert run(Path(home), "init_cluster store").returncode == 0
        kept = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
        yield {**kept, "THALWEG_HOME": home, "THALWEG_STORE_PORT": str(free_port())}


def with_store(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "scripts" / "with_store.sh", *command], env=environment, capture_output=True, text=True, check=False
    )


def test_a_command_finds_the_store_alone_and_leaves_it_stopped(store: dict[str, str]) -> None:
    asked = ("psql", "--no-psqlrc", "-Atc", "SELECT current_user, 6 * 7", "postgres")
    for _ in range(2):
        done = with_store(store, *asked)
        assert (done.returncode, "postgres|42" in done.stdout) == (0, True), done.stdout + done.stderr
    nested = with_store(store, "env", "-u", "THALWEG_LOCKED", str(ROOT / "scripts" / "with_store.sh"), *asked)
    assert nested.returncode != 0, "of two at once, one is refused"
    assert with_store(store, "psql", "-c", "SELECT 1 / 0", "postgres").returncode == 1
    listening = subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", store["THALWEG_STORE_PORT"]], check=False)
    assert listening.returncode == 2


def test_without_a_store_the_command_does_not_run(store: dict[str, str]) -> None:
    Path(store["THALWEG_HOME"], "clusters", "store").rename(Path(store["THALWEG_HOME"], "clusters", "away"))
    done = with_store(store, "echo", "went on")
    assert (done.returncode != 0, "went on" in done.stdout) == (True, False)
    assert "cure: run 'make up' first" in done.stdout


def test_a_store_in_use_is_left_alone(store: dict[str, str]) -> None:
    inner = (
        "env",
        "-u",
        "THALWEG_LOCKED",
        f"THALWEG_HOME={store['THALWEG_HOME']}/other",
        str(ROOT / "scripts/with_store.sh"),
    )
    done = with_store(store, *map(str, inner), "echo", "went on")
    assert (done.returncode, "went on" in done.stdout) == (1, False)
    assert "run 'make down' first" in done.stderr


@pytest.mark.parametrize(("stream", "copied", "made"), [(False, True, False), (False, False, True), (True, True, True)])
def test_a_demo_that_was_deleted_stays_away_and_stops_nothing(
    tmp_path: Path, stream: bool, copied: bool, made: bool
) -> None:
    """`make up` after the demo stream was deleted."""
    script = f"""
    DEMO_STREAM=demo
    secret() {{ :; }}
    run_rest() {{ [[ $1 != has-stream ]] || return {int(not stream)}; echo "asked: $1" >&2; }}
    demo_was_copied() {{ return {int(not copied)}; }}
    step "make demo stream" "look" make_demo_stream
    echo "up goes on"
    """
    done = run(tmp_path, script)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "up goes on"), done.stdout + done.stderr
    assert ("make demo" in done.stdout.partition("was deleted")[2]) is not made
    assert ("asked: stream" in done.stdout + done.stderr + "".join(
        file.read_text() for file in tmp_path.rglob("*.log"))) is made  # fmt: skip
