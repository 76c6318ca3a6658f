"""Builds checks: one line each, so that the lists of checks read as lists."""

import hashlib
from dataclasses import dataclass, field

from psycopg import sql

from thalweg.db.models import DatabaseRow
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.schemas import Check, CheckSide, CheckStatus

NAMES_SHOWN = 20
DIGEST_LENGTH = 12
CONNECTION = "connection"


def quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


def quoted_table(name: tuple[str, str]) -> str:
    return sql.Identifier(*name).as_string()


def listed(names: list[str]) -> str:
    """Names for a sentence; a long list is cut."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


@dataclass
class Checklist:
    """Collects the checks of one side. With `tentative`, table checks only warn: no tables are chosen yet."""

    side: CheckSide
    tentative: bool = False
    checks: list[Check] = field(default_factory=list)

    def ok(self, identifier: str, title: str, detail: str, better: str | None = None) -> None:
        """`better`: what would be better still."""
        self._add(identifier, title, CheckStatus.OK, detail, better, None)

    def warn(
        self, identifier: str, title: str, detail: str, cure: str | None, sql: str | None = None,
        items: list[str] | None = None,
    ) -> None:  # fmt: skip
        self._add(identifier, title, CheckStatus.WARNING, detail, cure, sql, items)

    def fail(
        self, identifier: str, title: str, detail: str, cure: str, sql: str | None = None,
        items: list[str] | None = None,
    ) -> None:  # fmt: skip
        self._add(identifier, title, CheckStatus.FAILED, detail, cure, sql, items)

    def ask(
        self, identifier: str, title: str, detail: str, cure: str, items: list[str], sql: str | None = None,
        bound_to: list[str] | None = None,
    ) -> None:  # fmt: skip
        """Adds a check that users must accept before the stream is created. `bound_to`: the consent holds for these,
        beside the check's text."""
        self._add(identifier, title, CheckStatus.CONSENT, detail, cure, sql, items, bound_to)

    def tables(
        self, identifier: str, title: str, bad: list[str], problem: str, cure: str, sql: list[str], fine: str
    ) -> None:
        """Fails when `bad` names any table; `problem` follows the names."""
        if not bad:
            self.ok(identifier, title, fine)
            return
        status = CheckStatus.WARNING if self.tentative else CheckStatus.FAILED
        self._add(identifier, title, status, f"{listed(bad)}: {problem}", cure, "\n".join(sql) or None)

    def _add(
        self, identifier: str, title: str, status: CheckStatus, detail: str, cure: str | None, sql: str | None,
        items: list[str] | None = None, bound_to: list[str] | None = None,
    ) -> None:  # fmt: skip
        texts = [detail, *(items or []), *(bound_to or [])]
        self.checks.append(
            Check(
                id=identifier,
                side=self.side,
                title=title,
                status=status,
                detail=detail,
                items=items or [],
                cure=cure,
                sql=sql,
                consent=_consent(identifier, texts) if status is CheckStatus.CONSENT else None,
            )
        )


def _consent(identifier: str, texts: list[str]) -> str:
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return f"{identifier}:{digest[:DIGEST_LENGTH]}"


def with_consents(checks: list[Check], accept: list[str]) -> list[Check]:
    given = set(accept)
    return [
        check.model_copy(update={"accepted": check.consent in given or check.id in given}) if check.consent else check
        for check in checks
    ]


def with_place(check: Check, database: DatabaseRow) -> Check:
    """Says where its SQL is to be run. Obstacles to a connection, and a missing database, are cured in another database
    of its server."""
    if not check.sql:
        return check
    elsewhere = f"{database.servers}/postgres"
    address = elsewhere if check.id == CONNECTION else database.address
    return check.model_copy(update={"sql_at": f"{database.name} ({address})"})


def failed_connection(side: CheckSide, failure: ConnectionFailure) -> list[Check]:
    return [
        Check(
            id=CONNECTION, side=side, title="Connection", status=CheckStatus.FAILED,
            detail=failure.message, cure=failure.cure, sql=failure.sql,
        )
    ]  # fmt: skip
