"""The control API over TLS: what --tls-cert and --tls-key promise."""

import http.client
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.certificate import make_certificate
from harness.engine import Engine, program
from harness.workspace import free_port


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    return make_certificate(tmp_path)


@pytest.fixture
def engine(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[Engine]:
    """Listens with the certificate; its client trusts that and nothing else."""
    engine = Engine(tmp_path / "engine", certificate)
    engine.start()
    yield engine
    engine.stop()


def ask(engine: Engine, context: ssl.SSLContext, token: str | None = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPSConnection("127.0.0.1", engine.port, timeout=10, context=context)
    try:
        connection.request("GET", "/v1/status", headers={"Authorization": f"Bearer {token or engine.token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_https_works_for_who_trusts_the_certificate(engine: Engine, certificate: tuple[Path, Path]) -> None:
    status, document = ask(engine, ssl.create_default_context(cafile=certificate[0]))
    assert status == 200
    assert document["engine"]["api"] == 1
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(engine, ssl.create_default_context())


def test_wrong_token_is_refused_over_https_too(engine: Engine, certificate: tuple[Path, Path]) -> None:
    status, document = ask(engine, ssl.create_default_context(cafile=certificate[0]), token="wrong" * 8)
    assert status == 401
    assert document["error"]["code"] == "unauthorized"
    assert engine.token not in json.dumps(document)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_protocols_are_refused(engine: Engine, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="TLSV1_ALERT"):  # the server's word, not this client's
        ask(engine, context)


def test_handshakes_that_never_end_stop_nobody(engine: Engine, certificate: tuple[Path, Path]) -> None:
    """Half-open ones of the control plane's own address, each of which says a little now and then."""
    context = ssl.create_default_context(cafile=certificate[0])
    slow = [socket.create_connection(("127.0.0.1", engine.port), timeout=10) for _ in range(200)]
    for part in (b"\x16", b"\x03\x01", b"\x02"):  # of a TLS record
        for sock in slow:
            try:
                sock.send(part)
            except OSError:
                continue  # it had to make place
        begun = time.monotonic()
        assert ask(engine, context)[0] == 200
        assert time.monotonic() - begun < 5  # a hundredth of it on an idle machine
    for sock in slow:
        sock.close()


def test_plain_http_is_refused(engine: Engine, certificate: tuple[Path, Path]) -> None:
    """Closed without an answer, and above all without one to the token; the engine goes on serving."""
    with socket.create_connection(("127.0.0.1", engine.port), timeout=10) as plain:
        plain.sendall(f"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {engine.token}\r\n\r\n".encode())
        received = b""
        try:
            while part := plain.recv(4096):
                received += part
        except ConnectionResetError:
            pass
    # At most a TLS alert (record type 21): nothing that an HTTP client could take for an answer.
    assert not received or received[0] == 21, received
    assert ask(engine, ssl.create_default_context(cafile=certificate[0]))[0] == 200


@pytest.mark.parametrize("flags", [["--tls-cert"], ["--tls-key"], ["--tls-cert", "--tls-key"]])
def test_certificate_that_cannot_be_used_is_told_at_once(tmp_path: Path, flags: list[str],
                                                         certificate: tuple[Path, Path]) -> None:
    """One of the two alone, or a key that is not the certificate's."""
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("x" * 40)
    files = {"--tls-cert": certificate[0], "--tls-key": make_certificate(tmp_path, "another")[1]}
    done = subprocess.run([program(), "--listen", f"127.0.0.1:{free_port()}", "--state-dir", str(tmp_path / "state"),
                           "--token-file", str(token), *(part for flag in flags for part in (flag, str(files[flag])))],
                          capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode != 0
    assert "certificate" in done.stdout + done.stderr


def test_network_without_tls_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("x" * 40)
    done = subprocess.run([program(), "--listen", f"0.0.0.0:{free_port()}", "--state-dir", str(tmp_path / "state"),
                           "--token-file", str(token)], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode != 0
    assert "--tls-cert" in done.stdout + done.stderr
