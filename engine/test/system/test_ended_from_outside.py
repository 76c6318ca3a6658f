"""A suite that is ended from outside leaves no server, no engine and no load behind: scripts/guard.py."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import guard
import pytest

from harness.cluster import wait_for
from harness.workspace import make_workspace, remove_workspace

# The suite starts a server, which its start program leaves behind, an engine, and a load in a session of its own.
PROGRAM = """
import subprocess, sys, time
from pathlib import Path
import guard
guard.guard()
from harness.cluster import Cluster
from harness.engine import Engine

workspace = Path(sys.argv[1])
cluster = Cluster(workspace, "server", {"fsync": "off"})
cluster.initialise()
cluster.start()
engine = Engine(workspace / "engine")
engine.start()
subprocess.Popen(["setsid", "--fork", "sh", "-c", f"while sleep 0.1; do : {workspace}; done"])
(workspace / "running").touch()
time.sleep(600)
"""
PATHS = os.pathsep.join([str(Path(__file__).parent), str(Path(guard.__file__).parent)])


@pytest.fixture
def workspace() -> Iterator[Path]:
    path = make_workspace("thalweg-ended")
    yield path
    for pid in survivors(path):
        os.kill(pid, signal.SIGKILL)
    remove_workspace(path)


def survivors(workspace: Path) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            if str(workspace) in line:
                found[int(entry.name)] = line
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize(("number", "whom"), [
    (signal.SIGTERM, "the outer guard"), (signal.SIGKILL, "the outer guard"), (signal.SIGKILL, "the inner guard"),
    (signal.SIGKILL, "the program"), (signal.SIGKILL, "its parent"),
])
def test_nothing_is_left(workspace: Path, number: int, whom: str) -> None:
    shell = subprocess.Popen(["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", PROGRAM, str(workspace)],
                             env=os.environ | {"PYTHONPATH": PATHS}, start_new_session=True)
    try:
        wait_for((workspace / "running").exists, 120, "the program has started all")
        engine = next(pid for pid, line in survivors(workspace).items() if "--state-dir" in line)
        program = parent_of(engine)
        inner = parent_of(program)
        outer = parent_of(inner)
        assert parent_of(outer) == shell.pid
        os.kill({"the outer guard": outer, "the inner guard": inner, "the program": program,
                 "its parent": shell.pid}[whom], number)
        wait_for(lambda: not survivors(workspace), 60, "all has ended")
    finally:
        shell.kill()
        shell.wait()


def test_a_command_is_guarded_like_a_program(tmp_path: Path) -> None:
    """As scripts/test.sh is: what its subshells wait for gets the signal too, and its status is the command's."""
    command = [sys.executable, guard.__file__, "sh", "-c"]
    assert subprocess.run([*command, "exit 3"], check=False).returncode == 3
    script = f'(sleep 600; : {tmp_path}); setsid --fork sh -c "sleep 600; : {tmp_path}"; touch {tmp_path}/late; true'
    started = subprocess.Popen([*command, f"touch {tmp_path}/running; {script}"])
    wait_for((tmp_path / "running").exists, 60, "the command runs")
    started.terminate()
    assert started.wait(60) == 128 + signal.SIGTERM
    assert not survivors(tmp_path)
    assert not (tmp_path / "late").exists()
