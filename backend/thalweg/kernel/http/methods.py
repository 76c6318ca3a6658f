"""A method that an address does not know is answered with 405 and all that it knows, whatever else would fit it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from thalweg.kernel.http.failures import respond
from thalweg.kernel.problems import Problem

PARAMETER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class Address:
    """A path with parameters in braces. The one with the most literal text is meant: `/streams/abc:stop` is no id."""

    pattern: re.Pattern[str]
    literal: int
    methods: frozenset[str]


def addresses_of(operations: Iterable[tuple[str, Iterable[str]]]) -> list[Address]:
    """From (path, methods) pairs of all operations."""
    methods: dict[str, set[str]] = {}
    for path, known in operations:
        methods.setdefault(path, set()).update(known)
    found = []
    for path, known in methods.items():
        literals = PARAMETER.split(path)
        pattern = re.compile("[^/]+".join(re.escape(part) for part in literals))
        found.append(Address(pattern, sum(map(len, literals)), frozenset(known)))
    return sorted(found, key=lambda address: -address.literal)


class MethodCheck:
    """Immutable."""

    def __init__(self, app: ASGIApp, addresses: list[Address]) -> None:
        self._app = app
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            meant = next((address for address in self._addresses if address.pattern.fullmatch(path)), None)
            if meant is not None and scope["method"] not in meant.methods:
                allowed = ", ".join(sorted(meant.methods))
                problem = Problem(
                    "method_not_allowed", f"{path} does not know {scope['method'][:20]}.", f"Use {allowed}.",
                    headers={"Allow": allowed},
                )  # fmt: skip
                await respond(Request(scope), problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)
