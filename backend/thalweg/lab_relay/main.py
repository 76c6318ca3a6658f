"""thalweg-lab-relay: where it listens, and where it leads.

How to ask the destination for the delay comes from libpq's environment (PGUSER, PGPASSWORD, PGDATABASE).
"""

import argparse
import asyncio
import logging
import signal

from thalweg.lab_relay.link import Delay
from thalweg.lab_relay.relay import Relay
from thalweg.lab_relay.wish import APPLICATION, follow


def place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not HOST:PORT")
    return host, int(port)


async def relay(listen: tuple[str, int], to: tuple[str, int]) -> None:
    """Until SIGTERM or SIGINT."""
    delay, asked_to_stop = Delay(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked_to_stop.set)
    relaying = Relay(to, delay)
    await relaying.listen(*listen)
    logging.info("passes %s:%d on to %s:%d", *listen, *to)
    conninfo = f"host={to[0]} port={to[1]} application_name='{APPLICATION}'"
    following = asyncio.create_task(follow(delay, conninfo))
    following.add_done_callback(lambda _: asked_to_stop.set())
    await asked_to_stop.wait()
    await relaying.close()
    if following.done():
        following.result()
    following.cancel()
    await asyncio.wait({following})


def run() -> None:
    parser = argparse.ArgumentParser(prog="thalweg-lab-relay", description=__doc__)
    parser.add_argument("--listen", type=place, required=True, metavar="HOST:PORT")
    parser.add_argument("--to", type=place, required=True, metavar="HOST:PORT")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(relay(given.listen, given.to))
