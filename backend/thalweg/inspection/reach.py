"""Resolves a database's host names, and finds out which of the addresses are allowed and which answer."""

import asyncio
from dataclasses import dataclass

from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target
from thalweg.kernel.hosts import Server
from thalweg.kernel.networks import AddressRefused
from thalweg.kernel.outside import outside


@dataclass(frozen=True)
class Place:
    """One address of one server."""

    server: Server
    address: str | None
    """None: a local socket."""


async def _places(target: Target) -> list[Place]:
    """The addresses of the target's host names, as far as the administrator allows them."""
    places: list[Place] = []
    unknown: list[str] = []
    for server in target.servers:
        if server.is_local:
            if not target.within.allow_local:
                raise ConnectionFailure(
                    "address_not_allowed", f"{server.host} is a local socket: a path of the control plane's host.",
                    "Give a host name or an address such as 127.0.0.1, or let the administrator add “local” to "
                    "THALWEG_DATABASE_NETWORKS.",
                )  # fmt: skip
            places.append(Place(server, None))
            continue
        try:
            addresses = await target.within.addresses_of(server.host, server.port)
        except AddressRefused as error:
            raise ConnectionFailure(
                "address_not_allowed", str(error),
                "Use a database inside these networks, or let the administrator add the address to "
                "THALWEG_DATABASE_NETWORKS.",
            ) from error  # fmt: skip
        except (OSError, UnicodeError):
            unknown.append(server.host)
            continue
        places += [Place(server, address) for address in addresses]
    if not places:
        raise ConnectionFailure(
            "database_unreachable", f"The host name {', '.join(unknown)} cannot be resolved.",
            "Check the host name, or use an IP address.",
        )  # fmt: skip
    return places


async def reachable_places(target: Target, timeout: float) -> list[Place]:
    """A plain TCP connection first: it tells an unreachable host from a refusing server whatever its language."""
    places = await _places(target)
    answers = await asyncio.gather(*(_knock(place, timeout) for place in places))
    reachable = [place for place, failure in zip(places, answers, strict=True) if failure is None]
    failures = [failure for failure in answers if failure is not None]
    if not reachable:
        messages = "; ".join(dict.fromkeys(failure.message.rstrip(".") for failure in failures))
        raise ConnectionFailure("database_unreachable", f"{messages}.", failures[0].cure)
    return reachable


async def _knock(place: Place, timeout: float) -> ConnectionFailure | None:
    if place.address is None:
        return None
    outside("a database")
    shown = place.server.shown
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(place.address, place.server.port)
    except TimeoutError:
        return ConnectionFailure(
            "database_unreachable", f"{shown} did not answer within {timeout:g} s.",
            "Check the host and the port, and that no firewall drops the connection.",
        )  # fmt: skip
    except OSError as error:
        return ConnectionFailure(
            "database_unreachable", f"{shown}: {error.strerror or error}.",
            "Check host and port, that the server runs, and that listen_addresses lets it listen there.",
        )  # fmt: skip
    writer.close()
    return None
