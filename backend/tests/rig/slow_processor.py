"""A program that gets a small share of a processor: stopped and continued by turns, as cpulimit does it."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.06


@contextmanager
def share_of_processor(process: int, share: float) -> Iterator[None]:
    """`process` runs for `share` of the time, 0 to 1."""
    ended = threading.Event()

    def take_turns() -> None:
        while not ended.is_set():
            time.sleep(TURN_SECONDS * share)
            os.kill(process, signal.SIGSTOP)
            time.sleep(TURN_SECONDS * (1 - share))
            os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
