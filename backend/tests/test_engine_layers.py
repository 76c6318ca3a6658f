"""The check of the engine's map: who includes a library's headers, and which sources start a thread."""

from pathlib import Path
from types import ModuleType

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(LINT))
    return __import__("engine_layers")


@pytest.mark.parametrize(
    ("component", "header", "problem"),
    [
        ("capture", "openssl/evp.h", "openssl/evp.h belongs to daemon, propagation, rules, transform"),
        ("transform", "openssl/evp.h", ""),
        ("apply", "libpq-fe.h", "libpq-fe.h belongs to pg"),
        ("control", "boost/asio.hpp", ""),
    ],
)
def test_a_librarys_headers_belong_to_the_folders_that_the_map_names(
    layers: ModuleType, component: str, header: str, problem: str
) -> None:
    assert layers._problem(component, False, header, layers.allowed_directions(), layers.header_owners()) == problem


def test_the_map_lists_exactly_the_sources_that_start_a_thread(layers: ModuleType) -> None:
    named = {name for row in layers._rows("### Threads") for name in layers._names(row[0])}
    assert layers._thread_problems(named) == []
    assert layers._thread_problems(named | {"pg/watch"}) == [
        "engine/src/pg/watch: starts a thread that ARCHITECTURE.md's table does not list"
    ]
    assert layers._thread_problems(named - {"daemon/stream"}) == [
        "ARCHITECTURE.md: engine/src/daemon/stream starts no thread"
    ]


@pytest.mark.parametrize(
    "line",
    ["std::thread thread_;", "thread_ = std::jthread([this] { run(); });", "std::vector<std::jthread> threads;",
     "auto side = std::async(std::launch::async, [] {});", "asio::thread_pool workers{kWorkers};"],
)  # fmt: skip
def test_a_thread_is_seen_however_it_is_started(layers: ModuleType, line: str) -> None:
    assert layers.THREAD.search(line)
    assert not layers.THREAD.search("std::this_thread::sleep_for(kLook); std::thread::id owner;")
