"""Two clusters and one engine for the whole run; each test gets databases and streams of its own names."""

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import guard
import pytest

from harness.cluster import Cluster
from harness.engine import Engine
from harness.scene import Scene
from harness.workspace import make_workspace, remove_workspace

# The kernel keeps what a killed process has written, so kill -9 tests lose nothing by fsync = off.
SETTINGS = {"fsync": "off", "max_connections": "200", "autovacuum_naptime": "5s", "shared_buffers": "'64MB'",
            "restart_after_crash": "on", "log_min_messages": "warning"}
SOURCE_SETTINGS = {"wal_level": "logical", "max_replication_slots": "30", "max_wal_senders": "30",
                   "max_prepared_transactions": "10", "max_wal_size": "'1GB'"}
DESTINATION_SETTINGS = {"max_wal_size": "'1GB'", "max_prepared_transactions": "10"}

_numbers = itertools.count(1)

if "PYTEST_XDIST_WORKER" not in os.environ:
    guard.guard()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=20261121, help="seed of every random choice")
    parser.addoption("--keep", action="store_true", help="keep the clusters' directory")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_ways: runs with our libraries in both servers, and without")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_ways"):
        metafunc.parametrize("libraries", [True, False], ids=["libraries", "plain"], indirect=True)


@pytest.fixture
def libraries(request: pytest.FixtureRequest) -> bool:
    """Whether the destination has the extension thalweg_datalayer and the source uses the plugin thalweg_output.

    Yes, but for one run of tests marked both_ways.
    """
    return bool(getattr(request, "param", True))


@pytest.fixture
def random_(request: pytest.FixtureRequest) -> random.Random:
    """Seeded by --seed and the test's name: the same test makes the same choices each time."""
    return random.Random(f"{request.config.getoption('--seed')} {request.node.name}")


@pytest.fixture(scope="session")
def workspace(request: pytest.FixtureRequest) -> Iterator[Path]:
    path = make_workspace("thalweg-system")
    yield path
    if not request.config.getoption("--keep"):
        remove_workspace(path)


def _cluster(workspace: Path, name: str, settings: dict[str, str]) -> Iterator[Cluster]:
    cluster = Cluster(workspace, name, settings)
    cluster.initialise()
    cluster.start()
    yield cluster
    cluster.stop("immediate")


@pytest.fixture(scope="session")
def source_cluster(workspace: Path) -> Iterator[Cluster]:
    yield from _cluster(workspace, "source", SETTINGS | SOURCE_SETTINGS)


@pytest.fixture(scope="session")
def destination_cluster(workspace: Path) -> Iterator[Cluster]:
    yield from _cluster(workspace, "destination", SETTINGS | DESTINATION_SETTINGS)


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, source_cluster: Cluster,
          destination_cluster: Cluster, libraries: bool) -> Iterator[Scene]:
    """A fresh database on each side, and a fresh engine."""
    number = next(_numbers)
    engine = Engine(workspace / f"engine-{number}")
    scene = Scene(source_cluster, destination_cluster, engine, f"t{number:03}", libraries)
    scene.make()
    yield scene
    scene.remove()
    if getattr(request.node, "failed", False):
        print("--- the end of the engine's log")
        print("\n".join(engine.log.read_text(errors="replace").splitlines()[-40:]))
    shutil.rmtree(engine.directory, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" and report.failed:
        item.failed = True  # type: ignore[attr-defined]
    return report
