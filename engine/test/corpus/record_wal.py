"""Cuts seeds for wal_reader_fuzz from a real server's first segment.

Usage: record_wal.py SEGMENT DIRECTORY    (pg_wal/000000010000000000000001 of a new cluster)

Each seed is the segment's first pages behind one byte, which says in what portions the fuzzer feeds them.
"""

import pathlib
import sys

PAGE_BYTES = 8192
SEEDS = {"one_page": (1, 3), "three_pages": (3, 134)}  # pages, and the first byte


def record(segment: pathlib.Path, directory: pathlib.Path) -> None:
    content = segment.read_bytes()
    for name, (pages, portion) in SEEDS.items():
        (directory / name).write_bytes(bytes([portion]) + content[: pages * PAGE_BYTES])


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
