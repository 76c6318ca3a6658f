"""Network namespaces, and a switch between them that delays and drops: real TCP, without netem or a firewall."""

import contextlib
import fcntl
import heapq
import itertools
import os
import select
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from harness.place import Place

SUBNET = "10.231.7"
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
PACKETS_PER_TURN = 64


def available() -> bool:
    return os.geteuid() == 0 and Path("/dev/net/tun").exists()


class Network:
    """One namespace per name, each with one TUN device; a thread moves packets between them until close().

    All of it ends with the test: namespaces go by close(), devices with their last process.
    """

    def __init__(self, *names: str) -> None:
        self.places: dict[str, Place] = {}
        self._delay = 0.0
        self._severed: set[frozenset[str]] = set()
        self._devices: dict[str, int] = {}
        self._names: dict[bytes, str] = {}
        wake, self._waker = socket.socketpair()
        self._wake = wake.detach()
        for number, name in enumerate(names, 1):
            self._add(name, f"{SUBNET}.{number}")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def sever(self, host: str, other: str) -> None:
        """From now on packets between the two vanish, in both directions, without a word to either."""
        self._severed = self._severed | {frozenset((host, other))}

    def mend(self) -> None:
        self._severed = set()

    def delay(self, seconds: float) -> None:
        """Every packet travels this long, in each direction."""
        self._delay = seconds

    def close(self) -> None:
        self._waker.close()
        self._thread.join()
        for descriptor in (self._wake, *self._devices.values()):
            os.close(descriptor)
        for place in self.places.values():
            assert place.namespace
            subprocess.run(["ip", "netns", "delete", place.namespace.name], check=True)

    def _add(self, name: str, address: str) -> None:
        namespace = f"thalweg-{os.getpid()}-{name}"
        subprocess.run(["ip", "netns", "add", namespace], check=True)
        path = Path("/run/netns") / namespace
        place = Place(address, ["nsenter", f"--net={path}", "--"], path)
        self.places[name] = place
        with place.entered():
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", b"tun0", IFF_TUN_NO_PI))
        self._devices[name] = device
        self._names[socket.inet_aton(address)] = name
        for command in (["link", "set", "lo", "up"], ["addr", "add", f"{address}/24", "dev", "tun0"],
                        ["link", "set", "tun0", "up"]):
            subprocess.run(["ip", "-n", namespace, *command], check=True)

    def _run(self) -> None:
        under_way: list[tuple[float, int, int, bytes]] = []  # due, order, device, packet
        order = itertools.count()
        by_device = {device: name for name, device in self._devices.items()}
        while True:
            left = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
            readable = select.select([*by_device, self._wake], [], [], left)[0]
            if self._wake in readable:
                return
            for device in readable:
                for packet in self._packets(device):
                    name = self._names.get(packet[16:20]) if packet[0] >> 4 == 4 else None
                    if name and frozenset((by_device[device], name)) not in self._severed:
                        due = time.monotonic() + self._delay
                        heapq.heappush(under_way, (due, next(order), self._devices[name], packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(under_way)
                self._send(device, packet)

    @staticmethod
    def _packets(device: int) -> list[bytes]:
        packets = []
        for _ in range(PACKETS_PER_TURN):
            try:
                packets.append(os.read(device, 65536))
            except BlockingIOError:
                break
        return packets

    @staticmethod
    def _send(device: int, packet: bytes) -> None:
        with contextlib.suppress(OSError):  # a full device drops, as a network does
            os.write(device, packet)
