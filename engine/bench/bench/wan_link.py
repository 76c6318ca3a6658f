"""Two network namespaces with a slow, far link between them: TUN devices and a relay, for kernels without netem.

The relay moves whole IP packets, so both TCP stacks see the real round trip, rate and drops. Needs root.
"""

import ctypes
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.cluster import wait_for
from harness.engine import Engine

ADDRESSES = ("10.231.9.1", "10.231.9.2")
CLONE_NEWNET = 0x40000000  # <linux/sched.h>
CHUNK = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace with a loopback of its own. Processes and sockets that entered() makes stay in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Only this thread is moved."""
        with Path("/proc/thread-self/ns/net").open("rb") as before:
            with Path(f"/run/netns/{self.name}").open("rb") as there:
                _setns(there.fileno())
            try:
                yield
            finally:
                _setns(before.fileno())

    def remove(self) -> None:
        _ip("netns", "delete", self.name)


class NamespaceEngine(Engine):
    """An engine in a namespace; its servers are reached over unix sockets, which namespaces do not divide."""

    def __init__(self, directory: Path, namespace: Namespace, address: str) -> None:
        super().__init__(directory)
        self.namespace = namespace
        self.propagation_host = address

    def start(self) -> None:
        with self.namespace.entered():
            super().start()

    def request(self, method: str, path: str, body: object = None, token: str | None = None) -> object:
        with self.namespace.entered():
            return super().request(method, path, body, token)

    def put_desired(self, **changed: object) -> None:
        super().put_desired(database_networks=["local"], **changed)


class WanLink:
    """Owner: one thread. Use it in a with statement."""

    def __init__(self, round_trip_ms: float, rate_mbit: float, queue_packets: int) -> None:
        self.near = Namespace(f"thalweg-a-{os.getpid()}")
        self.far = Namespace(f"thalweg-b-{os.getpid()}")
        # By its file: the relay has neither this package nor anything else to load.
        self.relay = subprocess.Popen([sys.executable, str(Path(__file__).with_name("wan_relay.py")), self.near.name,
                                       self.far.name, str(round_trip_ms / 2), str(rate_mbit), str(queue_packets)])
        wait_for(self._has_devices, 10, "the relay has made its devices", pause=0.02)
        for namespace, (own, peer) in ((self.near, ADDRESSES), (self.far, ADDRESSES[::-1])):
            _ip("-n", namespace.name, "address", "add", own, "peer", peer, "dev", "wan")
            _ip("-n", namespace.name, "link", "set", "wan", "up")

    def __enter__(self) -> "WanLink":
        return self

    def __exit__(self, *_: object) -> None:
        self.relay.terminate()
        self.relay.wait()
        for namespace in (self.near, self.far):
            namespace.remove()

    def round_trip_ms(self) -> float:
        """Of a TCP connection's opening, the fastest of five."""
        with self._listener() as listener:
            return min(self._connect_ms(listener) for _ in range(5))

    def bulk_rate(self, seconds: float) -> float:
        """Bytes a second that a plain TCP connection moves, from its opening until its last byte has come."""
        with self._listener() as listener:
            begun = time.monotonic()
            with self.near.entered():
                sender = socket.create_connection(listener.getsockname())
            receiver, _ = listener.accept()
            thread = threading.Thread(target=_send_for, args=(sender, seconds))
            thread.start()
            with receiver:
                received = sum(iter(lambda: len(receiver.recv(CHUNK)), 0))
            thread.join()
            return received / (time.monotonic() - begun)

    def _listener(self) -> socket.socket:
        with self.far.entered():
            return socket.create_server((ADDRESSES[1], 0))

    def _connect_ms(self, listener: socket.socket) -> float:
        begun = time.monotonic()
        with self.near.entered():
            socket.create_connection(listener.getsockname()).close()
        taken = 1000 * (time.monotonic() - begun)
        listener.accept()[0].close()
        return taken

    def _has_devices(self) -> bool:
        if self.relay.poll() is not None:
            raise RuntimeError(f"the relay ended with {self.relay.returncode}")
        return all(subprocess.run(["ip", "-n", namespace.name, "link", "show", "wan"], capture_output=True,
                                  check=False).returncode == 0 for namespace in (self.near, self.far))


def _send_for(sender: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    block = bytes(CHUNK)
    with sender:
        while time.monotonic() < end:
            sender.sendall(block)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
