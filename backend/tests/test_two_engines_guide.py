"""docs/guides/two-engines.md as a reader types it: a bare second host, its engine enrolled, a row over both engines.

The second host is a network namespace with an /etc, an /opt and a home of its own; systemctl, scp and `make up` have
stand-ins, all other lines run as they stand.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI

from tests.conftest import Sides, Users, made_sides
from tests.support.real_engine import RealEngine, can_mount, program
from tests.support.servers import start_cluster
from tests.support.serving import eventually
from tests.test_collector import Collector
from tests.test_commands import Shell, shell  # noqa: F401
from tests.test_real_engine import enrol
from thalweg.composition import close_resources, make_resources
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = Path(__file__).parent / "support"
GUIDE = ROOT / "docs" / "guides" / "two-engines.md"
BOX = re.compile(r"^```sh\n# (in the checkout|on bravo, as root)\n(.*?)^```$", re.M | re.S)
HERE, THERE = "10.231.8.1", "10.231.8.2"
ON_BRAVO = 'for name in etc opt root; do mount --bind "$STAND_IN/$name" "/$name"; done; cd; exec bash -euxc "$1"'
SCP = """#!/bin/sh
host() { case $1 in *@*:/*) echo "$STAND_IN/${1#*:}" ;; *@*:*) echo "$STAND_IN/root/${1#*:}" ;; *) echo "$1" ;; esac; }
cp "$(host "$1")" "$(host "$2")"
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not can_mount(), reason="makes network and mount namespaces: wants root"
)


@pytest.fixture
def sides() -> Generator[Sides, None, None]:
    """On a cluster that the other host reaches, too."""
    started = start_cluster(listen_addresses="'*'")
    with Path(started.directory, "data", "pg_hba.conf").open("a") as file:
        file.write(f"host all all {HERE}/24 scram-sha-256\n")
    started.execute("SELECT pg_reload_conf()")
    with made_sides(started) as made:
        yield made
    started.stop()


@dataclass
class Hosts:
    """The control plane's folder, and the other host: `tree` holds its directories and what its systemctl has made."""

    checkout: Path
    tree: Path
    namespace: str
    environment: dict[str, str] = field(default_factory=dict)

    async def type(self, where: str, lines: str) -> str:
        lines = lines.replace("10.0.0.2", THERE)
        environment = {**self.environment, "STAND_IN": str(self.tree)}
        command = ["bash", "-euxc", lines]
        if where != "in the checkout":
            environment = {"PATH": self.environment["PATH"], "HOME": "/root", "STAND_IN": str(self.tree)}
            command = [
                "ip",
                "netns",
                "exec",
                self.namespace,
                "unshare",
                "--mount",
                "bash",
                "-euc",
                ON_BRAVO,
                "-",
                lines,
            ]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.checkout, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output = (await process.communicate())[0].decode()
        assert process.returncode == 0, output + self.log()
        return output

    def log(self) -> str:
        file = self.tree / "thalweg-engine.log"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def hosts(tmp_path: Path) -> Generator[Hosts, None, None]:
    checkout = tmp_path / "checkout"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".thalweg").mkdir()
    for name in ("scripts", "deploy"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / ".venv/bin/thalweg").symlink_to(Path(sys.executable).with_name("thalweg"))
    # The engine's user enters it, so it cannot be pytest's.
    tree = Path(tempfile.mkdtemp(prefix="thalweg-test-host-"))
    tree.chmod(0o755)
    shutil.copytree("/etc", tree / "etc", symlinks=True)
    for name in ("opt", "root", "bin"):
        (tree / name).mkdir()
    # No link: the other host sees nothing of a checkout that lies under /root.
    shutil.copy(SUPPORT / "systemctl.py", tree / "bin/systemctl")
    (tree / "bin/scp").write_text(SCP)
    (tree / "bin/make").write_text('#!/bin/sh\n[ "$*" = up ]\n')
    for stand_in in (tree / "bin").iterdir():
        stand_in.chmod(0o755)
    namespace = f"thalweg-{os.getpid()}"
    ours, theirs = f"tw{os.getpid()}a", f"tw{os.getpid()}b"
    for command in (
        f"netns add {namespace}", f"link add {ours} type veth peer name {theirs} netns {namespace}",
        f"addr add {HERE}/24 dev {ours}", f"link set {ours} up", f"-n {namespace} link set lo up",
        f"-n {namespace} addr add {THERE}/24 dev {theirs}", f"-n {namespace} link set {theirs} up",
    ):  # fmt: skip
        subprocess.run(["ip", *command.split()], check=True)
    made = Hosts(checkout, tree, namespace, {"PATH": f"{tree}/bin:{os.environ['PATH']}"})
    yield made
    pid = tree / "thalweg-engine.pid"
    if pid.exists():
        os.kill(int(pid.read_text()), signal.SIGKILL)
    subprocess.run(["ip", "link", "delete", ours], check=True)
    subprocess.run(["ip", "netns", "delete", namespace], check=True)
    shutil.rmtree(tree)


@pytest.fixture
def local(tmp_path: Path) -> Generator[RealEngine, None, None]:
    engine = RealEngine(tmp_path / "local")
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture
async def with_the_guides_settings(app: FastAPI, settings: Settings, hosts: Hosts) -> AsyncGenerator[Any, None]:
    """Starts API and collector with the settings of settings.env, as `make up` does."""
    closing: list[Any] = []

    async def start() -> None:
        (line,) = (hosts.checkout / ".thalweg/settings.env").read_text().splitlines()
        name, _, file = line.partition("=")
        assert name == "THALWEG_ENGINE_CA_FILE"
        trusting = settings.model_copy(update={"engine_ca_file": Path(file)})
        app.state.resources = make_resources(trusting, "test")
        resources = make_resources(trusting, "thalweg collector")
        task = asyncio.create_task(Collector(resources).run())
        closing.extend((task, app.state.resources, resources))

    before = app.state.resources
    yield start
    if closing:
        await stop_task(closing[0])
        app.state.resources = before
        for resources in closing[1:]:
            await close_resources(resources)


async def test_the_guide_as_it_is_typed(
    hosts: Hosts,
    local: RealEngine,
    with_the_guides_settings: Any,
    shell: Shell,  # noqa: F811
    users: Users,
    sides: Sides,
) -> None:
    boxes = BOX.findall(GUIDE.read_text())
    assert [where for where, _ in boxes] == [
        "in the checkout", "on bravo, as root", "in the checkout", "in the checkout"
    ], "each box says where it is typed"  # fmt: skip
    pack, install, trust, replicate = boxes
    hosts.environment |= shell.environment | {
        "PATH": hosts.environment["PATH"], "THALWEG_TOKEN": users.tokens[Role.ADMIN],
        "THALWEG_ENGINE_BINARY": str(program()),
    }  # fmt: skip
    admin = users.client(Role.ADMIN)
    assert (await enrol(admin, local, name="local")).status_code == 201
    for side, name in ((sides.source, "orders"), (sides.destination, "warehouse")):
        made = await admin.post("/api/v1/databases", json={**side, "host": HERE, "name": name})
        assert made.status_code == 201, made.text

    await hosts.type(*pack)
    await hosts.type(*install)
    # A service needs its time to listen; `make up` stands between in the guide.
    before, up, after = trust[1].partition("make up\n")
    assert up
    await hosts.type(trust[0], before)
    await with_the_guides_settings()
    await eventually(lambda: listens(THERE, 8643))
    listed = await hosts.type(trust[0], after)
    assert re.search(rf"bravo +https://{THERE}:8643 +Online", listed), listed
    assert not (hosts.checkout / "bravo.token").exists()

    await hosts.type(*replicate)
    sides.on_source("INSERT INTO orders VALUES (1001, 'over both', 1)")

    async def arrived() -> bool:
        with psycopg.connect(
            host="127.0.0.1", port=sides.cluster.port, user="postgres", dbname=sides.destination["dbname"]
        ) as connection:
            return connection.execute("SELECT item FROM orders WHERE id = 1001").fetchall() == [("over both",)]

    await eventually(arrived)
    (stream,) = (await admin.get("/api/v1/streams")).json()["items"]
    assert stream["mode"] == "propagation"
    # The databases go with the test, so the stream must.
    deleted = await hosts.type("in the checkout", ".venv/bin/thalweg streams delete orders --yes --wait")
    assert "orders" in deleted
    await admin.aclose()


async def listens(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True
