"""Results of inspecting a user's database: connection tests, tables, checks."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from thalweg.kernel.models import Check as Check
from thalweg.kernel.models import CheckSide as CheckSide
from thalweg.kernel.models import CheckStatus as CheckStatus
from thalweg.kernel.models import Resource


class RoleFacts(Resource):
    """The database user's privileges, as far as replication needs them."""

    name: str
    superuser: bool
    replication: bool
    create_on_database: bool
    may_set_session_replication_role: bool


class ServerRole(StrEnum):
    PRIMARY = "primary"
    STANDBY = "standby"


class SeenServer(Resource):
    """One of the servers of a database that is read at a standby."""

    address: str
    role: ServerRole | None = Field(description="Null: it did not answer, `message` says why.")
    system_identifier: str | None
    wal_level: str | None
    message: str | None


class ConnectionTest(Resource):
    reachable: bool
    latency_ms: float | None = Field(description="Round trip of one statement on the open connection.")
    connect_ms: float | None
    version: str | None = Field(description="The server's name of it, such as 15.20.")
    version_number: int | None
    system_identifier: str | None
    role: RoleFacts | None
    tls: bool | None = Field(description="True when the connection is encrypted.")
    code: str | None = Field(
        description="Why it failed: database_unreachable, authentication_failed, unknown_database, tls_failed, "
        "insufficient_privilege, database_error; with `read_from` standby also source_standby_missing, "
        "source_read_only (no primary), source_changed (not one primary and one standby of one cluster) and "
        "unsupported_version. Null when it worked."
    )
    message: str | None
    cure: str | None
    sql: str | None
    servers: list[SeenServer] = Field(
        default_factory=list,
        description="With `read_from` standby: the role of each server. The other fields describe the standby.",
    )


class TableKind(StrEnum):
    TABLE = "table"
    PARTITIONED = "partitioned"
    PARTITION = "partition"
    FOREIGN = "foreign"
    UNLOGGED = "unlogged"


class ReplicaIdentity(StrEnum):
    DEFAULT = "default"
    FULL = "full"
    INDEX = "index"
    NOTHING = "nothing"


class SourceTable(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    kind: TableKind
    rows_estimated: int | None = Field(description="Null when the table was never analysed.")
    bytes: int = Field(description="Table, TOAST and indexes.")
    key_columns: list[str] = Field(description="The primary key's, else the replica identity index's.")
    replica_identity: ReplicaIdentity
    identified: bool = Field(
        description="Its rows can be identified. False: only its inserts and truncates can be replicated."
    )
    inserts_only: bool = Field(description="The rules replicate only its inserts and truncates.")
    replicable: bool
    unsupported: list[str] = Field(description="Why it cannot be replicated, in words. Empty when it can.")
    warnings: list[str] = Field(description="Warnings to read before replicating it.")


class SourceColumn(Resource):
    name: str
    type: str = Field(description="The type in PostgreSQL's words, such as `numeric(9,2)`.")


class SourceColumns(Resource):
    columns: list[SourceColumn] = Field(
        description="In the table's order. Without generated ones: their values are not captured."
    )


Consents = Annotated[list[Annotated[str, StringConstraints(max_length=200)]], Field(max_length=200)]
ACCEPT = (
    "The consents of checks that are accepted, as the preflight names them; or a check's id alone, to accept whatever "
    "that check says. Only admins may accept `carried_code`."
)


class Preflight(Resource):
    ready: bool = Field(description="No check failed, and whatever needs consent is accepted.")
    checks: list[Check]
