"""Principals: the origin of a request, and its permissions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Role(StrEnum):
    """Each role has the rights of those before it. METRICS is for tokens: it can only read /metrics."""

    METRICS = "metrics"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    def covers(self, other: "Role") -> bool:
        return self.rank >= other.rank


class UserRole(StrEnum):
    """The roles of people."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Demand(StrEnum):
    """The users who must have a second factor."""

    NOBODY = "nobody"
    ADMINS = "admins"
    EVERYBODY = "everybody"


Via = Literal["session", "token", "system", "anonymous"]


@dataclass(frozen=True)
class Principal:
    user_id: str
    name: str
    role: Role
    via: Via
    credential_id: str
    """The session's or token's id: names the credential in the audit log."""
    confined: bool = False
    """Only a second factor may be set up: one is demanded, and the user has none."""


def anonymous(name: str) -> Principal:
    """A principal who only claims to be that user, for the audit log."""
    return Principal("", name, Role.VIEWER, "anonymous", "")
