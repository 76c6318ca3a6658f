"""Where a process of a test runs: in the machine's own network, or in a network namespace of the test's."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@dataclass(frozen=True)
class Place:
    """`address` is what the other places of a test reach it by; `prefix` begins command lines of processes there."""

    address: str = "127.0.0.1"
    prefix: list[str] = field(default_factory=list)
    namespace: Path | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets that this thread makes within belong to the place, and stay there."""
        if self.namespace is None:
            yield
            return
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(self.namespace, os.O_RDONLY)
        try:
            _set_namespace(there)
            yield
        finally:
            _set_namespace(home)
            os.close(there)
            os.close(home)


HERE = Place()
