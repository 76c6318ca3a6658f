"""The files that lint looks at: what git tracks or would track."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def source_files(*suffixes: str) -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=True).stdout.decode()
    for name in sorted(set(listed.split("\0")) - {""}):
        path = ROOT / name
        if path.is_file() and (not suffixes or path.suffix in suffixes):
            yield path


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
