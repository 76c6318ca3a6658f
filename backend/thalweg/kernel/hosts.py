"""The servers of a database: one host, or several with commas between, each with a port of its own if it has one."""

import re
from dataclasses import dataclass

HOSTS_MAX = 8
_NAME = re.compile(r"^[^\s\x00-\x1f\x7f,\[\]]+$")


@dataclass(frozen=True)
class Server:
    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """A socket in the file system, or in Linux's abstract namespace."""
        return self.host.startswith(("/", "@"))

    @property
    def shown(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def servers_of(text: str, port: int) -> list[Server]:
    """`db1`, `db1,db2:5433`, `[::1]:5433`, `::1`. Raises ValueError."""
    parts = text.split(",")
    if len(parts) > HOSTS_MAX:
        raise ValueError(f"At most {HOSTS_MAX} hosts, separated by commas.")
    return [_server(part.strip(), port) for part in parts]


def _server(part: str, port: int) -> Server:
    own = ""
    if part.startswith("["):
        host, closing, rest = part[1:].partition("]")
        if not closing or ":" not in host or (rest and not rest.startswith(":")):
            raise ValueError(f"{part} is not an IPv6 address in brackets, such as [::1] or [::1]:5432.")
        own = rest[1:]
    elif part.count(":") == 1 and not part.startswith("/"):
        host, _, own = part.partition(":")
    else:
        host = part
    if not _NAME.match(host):
        raise ValueError("Each host is a name or an address, without spaces.")
    if own and not (own.isdecimal() and 1 <= int(own) <= 65535):
        raise ValueError(f"{own} is not a port from 1 to 65535.")
    return Server(host, int(own) if own else port)
