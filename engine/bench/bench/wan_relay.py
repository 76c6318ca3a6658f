"""wan_relay.py NAMESPACE NAMESPACE DELAY_MS RATE_MBIT QUEUE_PACKETS: a far link between two network namespaces.

Each namespace gets a TUN device `wan`. A packet leaves after those before it (RATE_MBIT), then travels DELAY_MS one
way; QUEUE_PACKETS at most are under way or waiting in one direction, more are dropped. Runs until it is terminated.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

CLONE_NEWNET = 0x40000000  # <linux/sched.h>
TUNSETIFF = 0x400454CA  # <linux/if_tun.h>
IFF_TUN_NO_PI = 0x1001
PACKET_BYTES_MAX = 65_535
BATCH = 64  # packets read from one side before the other has its turn


def open_device(namespace: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if libc.setns(there, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", b"wan", IFF_TUN_NO_PI))
    if libc.setns(before, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot leave the namespace")
    os.close(there)
    os.close(before)
    return device


class Direction:
    """From one device to the other."""

    def __init__(self, source: int, sink: int, delay: float, bytes_per_second: float, queue_packets: int) -> None:
        self.source = source
        self.sink = sink
        self.delay = delay
        self.bytes_per_second = bytes_per_second
        self.queue_packets = queue_packets
        self.packets: deque[tuple[float, bytes]] = deque()
        self.line_free = 0.0  # when the last packet has left

    def deliver(self, now: float) -> float | None:
        """Sends what has arrived; returns the seconds until the next packet does."""
        while self.packets and self.packets[0][0] <= now:
            with contextlib.suppress(OSError):  # an interface that is down drops, as a cable would
                os.write(self.sink, self.packets.popleft()[1])
        return self.packets[0][0] - now if self.packets else None

    def take(self, now: float) -> None:
        for _ in range(BATCH):
            try:
                packet = os.read(self.source, PACKET_BYTES_MAX)
            except OSError:  # nothing more, or not up yet
                return
            if len(self.packets) < self.queue_packets:
                self.line_free = max(now, self.line_free) + len(packet) / self.bytes_per_second
                self.packets.append((self.line_free + self.delay, packet))


def main() -> None:
    devices = [open_device(namespace) for namespace in sys.argv[1:3]]
    delay, rate, queue = float(sys.argv[3]) / 1e3, float(sys.argv[4]) * 1e6 / 8, int(sys.argv[5])
    directions = {devices[0]: Direction(devices[0], devices[1], delay, rate, queue),
                  devices[1]: Direction(devices[1], devices[0], delay, rate, queue)}
    while True:
        waits = [wait for direction in directions.values() if (wait := direction.deliver(time.monotonic())) is not None]
        for device in select.select(devices, [], [], max(0.0, min(waits)) if waits else None)[0]:
            directions[device].take(time.monotonic())


if __name__ == "__main__":
    main()
