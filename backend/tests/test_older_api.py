"""The command line's error queue with an API of an earlier version, whose answers have fewer members."""

from typing import Any

import pytest

from thalweg.cli.client import CommandError
from thalweg.cli.commands import destinations

PARKED = {
    "id": 1, "xid": 7, "parked_at": "2026-11-28T10:00:00Z", "commit_lsn": "0/1", "lcrs": 2, "tables": ["public.t"],
    "message": "duplicate key",
}  # fmt: skip
EXECUTION = {"error_id": 1, "state": "DONE", "executed": 2, "total": 3, "message": None}
VALUE = {"state": "present", "text": "5", "bytes": 1, "cut": False}
COLUMN = {
    "name": "id", "identity": True, "wanted": VALUE, "before": VALUE, "now": VALUE, "wanted_differs": False,
    "before_differs": False,
}  # fmt: skip
CONTENTS = {
    "error": PARKED,
    "changes": [
        {"operation": "INSERT", "schema": "public", "table": "t", "problem": None, "rows_found": 1, "columns": [COLUMN]}
    ],
    "changes_total": 1,
}


class OlderApi:
    """It refuses parameters that it does not know, as every version does."""

    def __init__(self) -> None:
        self.execution: dict[str, Any] = EXECUTION
        self.refuses_execution = False
        self.put_with: str | None = None
        self.posts = 0

    def find(self, *_: str) -> dict[str, Any]:
        return {"id": "s"}

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        if path == "/openapi.json":
            return {"components": {"schemas": {"ErrorExecution": {}}}}
        if path == "/streams/s":
            return {"id": "s", "name": "s", "destinations": [{"id": "w", "database": {"name": "w"}}]}
        sent = {name for name, value in query.items() if value is not None}
        if sent - {"limit", "roots_only", "cursor"}:
            raise CommandError("Unknown parameter.", code="invalid_request")
        if path.endswith("/errors/1"):
            return CONTENTS
        return {"errors": [PARKED], "total": 1, "roots": 1, "next_cursor": None, "execution": self.execution}

    def post(self, path: str, _: Any = None) -> dict[str, Any]:
        self.posts += 1
        if path.endswith("dry-run"):
            return {"succeeds": True}
        if self.refuses_execution:
            raise CommandError("It failed.", code="execution_refused")
        return {"state": "DONE"}

    def put(self, _: str, __: Any, etag: str) -> None:
        self.put_with = etag


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> OlderApi:
    api = OlderApi()
    monkeypatch.setattr(destinations, "connect", lambda: api)
    return api


def said(capsys: pytest.CaptureFixture[str], **options: Any) -> str:
    destinations.errors("s", **options)
    return " ".join(capsys.readouterr().out.split())


def test_an_execution_tells_what_the_api_knows(api: OlderApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, execute=1, yes=True) == "Transaction 1 is applied."
    assert said(capsys, execute_all=True, yes=True) == "All parked transactions have been applied."
    api.execution = EXECUTION | {"state": "FAILED", "message": "duplicate key"}
    assert "has applied 2 of 3 and stopped: duplicate key" in said(capsys)
    api.refuses_execution = True
    with pytest.raises(CommandError, match="Transaction 1 is applied, with 1 behind it"):
        said(capsys, execute=1, yes=True)


def test_the_list_a_dry_run_and_an_opened_transaction(api: OlderApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.execution = EXECUTION
    assert "duplicate key" in said(capsys)
    assert said(capsys, dry_run=1) == "Transaction 1 would be applied. Nothing was changed."
    assert "1. INSERT public.t rows at the destination: 1" in said(capsys, show=1)


def test_a_change_is_decided_about_without_a_version(api: OlderApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is left out" in said(capsys, leave_out=1, change=1, reason="a duplicate")
    assert api.put_with == "*"


@pytest.mark.parametrize("asked", [{"execute": 1}, {"execute_all": True}, {"dry_run": 1}])
def test_a_role_that_it_would_ignore_is_refused(
    api: OlderApi, capsys: pytest.CaptureFixture[str], asked: dict[str, Any]
) -> None:
    with pytest.raises(CommandError, match="cannot apply as another role"):
        said(capsys, role="clerk", yes=True, **asked)
    assert not api.posts
