"""Ranges of addresses that outgoing connections may lead to, as the administrator says it."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Any

from pydantic import BeforeValidator, InstanceOf
from pydantic_settings import NoDecode

from thalweg.kernel.outside import outside

LOCAL = "local"
TRANSLATED = IPv6Network("64:ff9b::/96")
"""IPv4 beyond a translator (RFC 6052)."""
LOOKUP_SECONDS = 5.0
"""For one name. The system's resolver takes 10 s and more to give up a name whose name servers do not answer."""
_lookups = ThreadPoolExecutor(16, thread_name_prefix="names")
"""Nothing else runs here: users' names that their name servers never answer must hold up no other work."""


class AddressRefused(ValueError):
    """A host leads out of the ranges; the message says which address."""


@dataclass(frozen=True)
class Networks:
    """Immutable. Without ranges: every address, but no local socket, whose name is a path of this host."""

    text: tuple[str, ...] = ()

    @cached_property
    def _ranges(self) -> list[IPv4Network | IPv6Network]:
        return [ip_network(network) for network in self.text if network != LOCAL]

    @property
    def allow_local(self) -> bool:
        return LOCAL in self.text

    @property
    def restrict_addresses(self) -> bool:
        return bool(self._ranges)

    def allow(self, address: str) -> bool:
        """IPv4 addresses in their IPv6 form count as IPv4."""
        found = _unmapped(ip_address(address.partition("%")[0]))
        return not self._ranges or any(found in network for network in self._ranges)

    async def addresses_of(self, host: str, port: int) -> list[str]:
        """The host's addresses inside the ranges, to connect to one of these and look nothing up again: what was
        compared is what is used, however often the name's answer changes. Raises AddressRefused, OSError."""
        outside("a name")
        answers = _numeric(host, port) or await _looked_up(host, port)
        found = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
        allowed = [address for address in found if self.allow(address)]
        if not allowed:
            raise AddressRefused(f"{host} leads to {found[0]}, which is outside the permitted networks.")
        return allowed


def _numeric(host: str, port: int) -> list[Any]:
    """Reads an address at once, whatever names are being looked up. Empty: it is a name."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return []


async def _looked_up(host: str, port: int) -> list[Any]:
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(_lookups, look_up, host, port)
    except TimeoutError as error:
        message = f"Name resolution took longer than {LOOKUP_SECONDS:g} s"
        raise socket.gaierror(socket.EAI_AGAIN, message) from error  # as the resolver says when it gives up


def look_up(host: str, port: int) -> list[Any]:
    """Waits for the resolver."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def network_of(address: str | None) -> str:
    """The network that counts as one caller; for IPv6 the /64, because one host can use all of its addresses."""
    if address is None:
        return "unknown"
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    parsed = _unmapped(parsed)
    if parsed in TRANSLATED:
        parsed = IPv4Address(int(parsed) & 0xFFFFFFFF)
    return str(parsed) if parsed.version == 4 else str(ip_network((int(parsed) >> 64 << 64, 64)))


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An address of IPv4 where it is one in its IPv6 form (RFC 4291, 2.5.5.2)."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def parse_networks(value: object) -> object:
    """From a list with commas or spaces between: `10.0.0.0/8, fd00::/8, 192.0.2.7, local`."""
    if not isinstance(value, str):
        return value
    text = tuple(value.replace(",", " ").split())
    for network in text:
        if network != LOCAL:
            ip_network(network)
    return Networks(text)


NetworksSetting = Annotated[InstanceOf[Networks], NoDecode, BeforeValidator(parse_networks)]
