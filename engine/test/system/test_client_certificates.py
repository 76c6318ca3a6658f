"""Servers that let the engine in by its certificate alone; what it shows and trusts is PEM in the conninfo."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import DESTINATION_SETTINGS, SETTINGS, SOURCE_SETTINGS
from harness.certificate import Authority
from harness.cluster import Cluster
from harness.engine import Engine
from harness.outage import wait_retrying
from harness.scene import Scene
from harness.workspace import give_to_postgres

TABLE = """CREATE TABLE item (id bigint PRIMARY KEY, body text);
           INSERT INTO item SELECT n, 'x' FROM generate_series(1, 50) n;"""
_numbers = itertools.count(1)
SESSIONS = """SELECT a.backend_type, s.ssl, s.client_dn FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
               WHERE a.usename = 'thalweg'"""


@dataclass
class Shown:
    """The PEM files of one conninfo: whom it trusts, and what it shows for itself."""

    root: Path
    certificate: Path
    key: Path

    def words(self) -> str:
        pairs = (("sslrootcert", self.root), ("sslcert", self.certificate), ("sslkey", self.key))
        return "sslmode=verify-full " + " ".join(f"{name}='{path.read_text()}'" for name, path in pairs)


class CertificateScene(Scene):
    """`shown` by side. No conninfo has a password."""

    shown: dict[str, Shown]

    @property
    def source_conninfo(self) -> str:
        return self._conninfo("source", self.source)

    @property
    def destination_conninfo(self) -> str:
        return self._conninfo("destination", self.destination)

    def _conninfo(self, side: str, cluster: Cluster) -> str:
        return f"host=127.0.0.1 port={cluster.port} dbname={self.database} user=thalweg {self.shown[side].words()}"

    def sessions(self, cluster: Cluster) -> list[tuple[object, ...]]:
        return cluster.sql("postgres", SESSIONS)


def tls_cluster(workspace: Path, name: str, settings: dict[str, str], authority: Authority) -> Cluster:
    """Its superuser comes with a password, as in other tests; thalweg by a certificate of the authority and nothing
    else."""
    cluster = Cluster(workspace, name, settings | {"ssl": "on", "ssl_ca_file": "'ca.crt'"})
    cluster.initialise()
    certificate, key = authority.issue(f"{name}.example")
    for file, pem in (("ca.crt", authority.certificate), ("server.crt", certificate), ("server.key", key)):
        path = cluster.directory / file
        path.write_text(pem.read_text())
        path.chmod(0o600)
        give_to_postgres(path)
    (cluster.directory / "pg_hba.conf").write_text("host all postgres samenet scram-sha-256\n"
                                                   "hostssl all thalweg samenet cert clientcert=verify-full\n")
    cluster.start()
    return cluster


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority whom no server trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="module")
def clusters(workspace: Path, authority: Authority) -> Iterator[tuple[Cluster, Cluster]]:
    source = tls_cluster(workspace, "tls-source", SETTINGS | SOURCE_SETTINGS, authority)
    destination = tls_cluster(workspace, "tls-destination", SETTINGS | DESTINATION_SETTINGS, authority)
    yield source, destination
    source.stop("immediate")
    destination.stop("immediate")


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, clusters: tuple[Cluster, Cluster],
          authority: Authority) -> Iterator[CertificateScene]:
    number = next(_numbers)
    engine = Engine(workspace / f"engine-tls-{number}")
    scene = CertificateScene(*clusters, engine, f"tls{number}", libraries=False)
    own = authority.issue("thalweg")
    scene.shown = {side: Shown(authority.certificate, *own) for side in ("source", "destination")}
    scene.make()
    scene.run_at_source(TABLE)
    yield scene
    scene.remove()
    if getattr(request.node, "failed", False):
        print("--- the end of the engine's log")
        print("\n".join(engine.log.read_text(errors="replace").splitlines()[-40:]))


def test_capture_copy_and_apply_log_in_with_certificates(scene: CertificateScene) -> None:
    scene.start_stream(parallelism=2)
    scene.at_source("INSERT INTO item VALUES (51, 'y')")
    scene.wait_applied()
    for cluster, least in ((scene.source, {"walsender"}), (scene.destination, {"client backend"})):
        sessions = scene.sessions(cluster)
        assert {session[1:] for session in sessions} == {(True, "/CN=thalweg")}, sessions
        assert least <= {session[0] for session in sessions}, sessions
    scene.assert_same()
    # They are in the state that the engine keeps, not in files that somebody has to put there again.
    scene.engine.kill()
    scene.at_source("INSERT INTO item VALUES (52, 'z')")
    scene.engine.start()
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    key = scene.shown["source"].key.read_bytes().splitlines()[1]
    kept = [path for path in scene.engine.directory.rglob("*") if path.is_file() and key in path.read_bytes()]
    assert kept == [], "keys are encrypted where the engine keeps them"


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_server_of_another_authority_is_refused(scene: CertificateScene, stranger: Authority, side: str) -> None:
    """Before the engine shows anything of its own."""
    scene.shown[side].root = stranger.certificate
    scene.start_stream(wait=False)
    error = wait_retrying(scene.engine, scene.stream, "database_unreachable")["error"]
    assert error["side"] == side
    assert "certificate verify failed" in error["message"], error
    assert "TLS mode and certificates" in error["cure"], error
    scene.assert_nothing_left()


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_certificate_of_another_user_is_refused(scene: CertificateScene, authority: Authority, side: str) -> None:
    root = scene.shown[side].root
    scene.shown[side] = Shown(root, *authority.issue("somebody-else"))
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["side"]) == ("authentication_failed", side), error
    assert "certificate authentication failed for user \"thalweg\"" in error["message"], error
    scene.assert_nothing_left()


def test_a_certificate_that_the_server_does_not_trust_is_refused(scene: CertificateScene, stranger: Authority) -> None:
    scene.shown["destination"] = Shown(scene.shown["source"].root, *stranger.issue("thalweg"))
    scene.start_stream(wait=False)
    error = wait_retrying(scene.engine, scene.stream, "database_unreachable")["error"]
    assert "unknown ca" in error["message"], error
    scene.assert_nothing_left()
