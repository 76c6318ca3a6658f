"""Talks to one engine's control API. Every failure is an EngineFailure: unreachable, or refused with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from thalweg.engine_client.conflict_documents import ConflictCounts, LoggedConflicts
from thalweg.engine_client.documents import (
    EngineStats,
    EngineStatus,
    IdentityRequest,
    Markers,
    Rehearsal,
    RehearsalProblem,
    StatsHistory,
    Transactions,
)
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.parked_documents import DryRun, ExecutionReport, ParkedContents, ParkedErrors, ParkedTree
from thalweg.engine_client.rule_documents import EngineRuleProblem, RulesCheck, RulesTrial
from thalweg.engine_client.search_documents import EngineSearch, FoundChanges, KeptLog
from thalweg.engine_client.transport import ONCE
from thalweg.kernel.outside import outside
from thalweg.kernel.words import ended

REHEARSAL_TIMEOUT_SECONDS = 90
RULES_CHECK_TIMEOUT_SECONDS = 30
CHANGES_MAX = 100
"""The changes of a parked transaction in one answer."""
CONTENTS_TIMEOUT_SECONDS = 20
"""Each statement at the destination has two seconds; there may be hundreds, at a distance."""
DISCARD_TIMEOUT_SECONDS = 20
"""It may wait for a lock at the destination."""
NOT_SENT = (
    httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL,
)  # fmt: skip
BROKEN = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
REPEATABLE_METHODS = ("GET", "PUT")
REPEATABLE_PATHS = ("/v1/rehearsal", "/v1/rules/check", "/v1/rules/test")
"""Requests of other methods that change nothing at the engine."""
Answer = TypeVar("Answer", bound=BaseModel)


@dataclass
class EngineFailure(Exception):
    """`status` is None when no answer came; else `code`, `message` and `sqlstate` are the engine's. `perhaps_done`: the
    request was to change something, and the engine may have done it all the same, or may still do it."""

    code: str
    message: str
    cure: str
    status: int | None = None
    sqlstate: str = ""
    perhaps_done: bool = False

    @property
    def reached(self) -> bool:
        return self.status is not None


class EngineClient:
    """Immutable; shares the process's HTTP client. Time-outs in seconds, for a whole request."""

    def __init__(self, http: httpx.AsyncClient, url: str, token: str, timeout: float) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._token = token
        self._timeout = timeout

    async def status(self) -> EngineStatus:
        return await self._read(EngineStatus, "GET", "/v1/status")

    async def stats(self) -> EngineStats:
        return await self._read(EngineStats, "GET", "/v1/stats")

    async def stats_history(self, since_us: int) -> StatsHistory:
        """Samples after that time, in microseconds since 1970. Status 404: the engine's version keeps none."""
        return await self._read(StatsHistory, "GET", f"/v1/stats/history?since={since_us}")

    async def transactions(self, stream_id: str) -> Transactions:
        return await self._read(Transactions, "GET", f"/v1/streams/{stream_id}/transactions")

    async def markers(self, stream_id: str) -> Markers:
        return await self._read(Markers, "GET", f"/v1/streams/{stream_id}/markers")

    async def place_marker(self, stream_id: str, marker_id: str, label: str) -> None:
        """Raises EngineFailure with status 409 where the engine does not capture, or not now."""
        await self._request("POST", f"/v1/streams/{stream_id}/markers", {"id": marker_id, "label": label})

    async def put_desired(self, document: dict[str, Any]) -> None:
        """Raises EngineFailure with status 409 when the engine holds a higher revision or refuses to forget."""
        await self._request("PUT", "/v1/desired", document)

    async def rehearse(
        self, source: str, destination: str, networks: Sequence[str], tables: Sequence[dict[str, Any]]
    ) -> list[RehearsalProblem]:
        """Tries the initial copy's statements; `source` and `destination` are conninfos with passwords, `tables` are as
        in the desired document. Raises EngineFailure with status 404 when the engine's version cannot, 503 when it has
        too much to do."""
        body: dict[str, Any] = {
            "source": {"conninfo": source},
            "destination": {"conninfo": destination},
            "tables": list(tables),
        }
        if networks:
            body["database_networks"] = list(networks)
        patient = self._patient(REHEARSAL_TIMEOUT_SECONDS)
        return (await patient._read(Rehearsal, "POST", "/v1/rehearsal", body)).problems

    async def check_rules(
        self, source: str, networks: Sequence[str], tables: Sequence[dict[str, Any]]
    ) -> list[EngineRuleProblem]:
        """Whether the tables' rules fit the source as it is now; `source` and `tables` are as for `rehearse`. Raises
        EngineFailure with status 404 when the engine's version knows no rules, 503 when it has too much to do."""
        body: dict[str, Any] = {"source": {"conninfo": source}, "tables": list(tables)}
        if networks:
            body["database_networks"] = list(networks)
        patient = self._patient(RULES_CHECK_TIMEOUT_SECONDS)
        return (await patient._read(RulesCheck, "POST", "/v1/rules/check", body)).problems

    async def test_rules(
        self, source: str, source_name: str, networks: Sequence[str], table: dict[str, Any], sample: int,
        changes: Sequence[dict[str, Any]], recent: dict[str, Any] | None = None,
    ) -> RulesTrial:  # fmt: skip
        """Verdicts of a table's rules on these changes, on so many of its rows, and on the next changes of a stream.
        Raises EngineFailure as `check_rules` does; with status 400 when the engine's version knows no `recent`."""
        body: dict[str, Any] = {
            "source": {"conninfo": source}, "source_name": source_name, "tables": [table], "sample": sample,
            "changes": list(changes),
        }  # fmt: skip
        if networks:
            body["database_networks"] = list(networks)
        if recent is not None:
            body["recent"] = recent
        patient = self._patient(RULES_CHECK_TIMEOUT_SECONDS)
        return await patient._read(RulesTrial, "POST", "/v1/rules/test", body)

    async def request_identity(self, name: str) -> IdentityRequest:
        """Raises EngineFailure with status 404 when the engine's version has no identities."""
        return await self._read(IdentityRequest, "POST", "/v1/identity/request", {"name": name})

    async def put_identity(self, certificate: str, authority: str) -> None:
        await self._request("PUT", "/v1/identity", {"certificate": certificate, "ca": authority})

    async def retry(self, stream_id: str, destination: str | None = None) -> None:
        """None: what the stream's engine does for all destinations, capture or receiver."""
        path = f"/v1/streams/{stream_id}" if destination is None else _path(stream_id, destination)
        await self._request("POST", f"{path}/retry")

    async def errors(
        self, stream_id: str, destination: str, after: int, limit: int, roots_only: bool, cause: str | None = None
    ) -> ParkedErrors:
        """Those with higher ids than `after`, the lowest first. `roots_only`: without those that wait behind others.
        `cause`: those with this one only."""
        query = f"after={after}&limit={limit}{'&roots=1' if roots_only else ''}"
        if cause is not None:
            query += f"&cause={cause}"
        return await self._read(ParkedErrors, "GET", f"{_path(stream_id, destination)}/errors?{query}")

    async def error_contents(
        self, stream_id: str, destination: str, error_id: int, after: int = 0, limit: int = CHANGES_MAX,
        *, whole: bool = False,
    ) -> ParkedContents:  # fmt: skip
        """The changes with higher numbers than `after`. `whole`: values beyond 1 KiB too, up to 32 MiB of a change;
        there may be fewer changes then. Older engines give the first ones, whatever is asked for, and refuse `whole`
        with status 400 and invalid_request."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        path = f"{_path(stream_id, destination)}/errors/{error_id}?after={after}&limit={limit}"
        path += "&whole=1" if whole else ""
        return await patient._read(ParkedContents, "GET", path)

    async def error_tree(self, stream_id: str, destination: str, error_id: int, after: int, limit: int) -> ParkedTree:
        """Those that wait behind it, from `next_after` on. Status 404 and not_found from older engines."""
        path = f"{_path(stream_id, destination)}/errors/{error_id}/dependants?after={after}&limit={limit}"
        return await self._read(ParkedTree, "GET", path)

    async def error_change(self, stream_id: str, destination: str, error_id: int, number: int) -> ParkedContents:
        """One change of it, by its number. Several of a TRUNCATE of several tables."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        return await patient._read(ParkedContents, "GET", _change(stream_id, destination, error_id, number))

    async def edit_error(
        self, stream_id: str, destination: str, error_id: int, number: int, edit: dict[str, Any], version: str | None
    ) -> None:
        """Raises EngineFailure with status 400 where the change has no such values, or the transaction's edits are not
        of that version any more (None: whatever they are), 503 while the queue is executed."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        await patient._request("PUT", _change(stream_id, destination, error_id, number, version), edit)

    async def restore_error(
        self, stream_id: str, destination: str, error_id: int, number: int, version: str | None
    ) -> None:
        """Takes a decision about a change back. Fails as edit_error does."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        await patient._request("DELETE", _change(stream_id, destination, error_id, number, version))

    async def execute_error(
        self, stream_id: str, destination: str, error_id: int | None, role: str | None = None
    ) -> ExecutionReport:
        """Without an id, all of the queue. RUNNING: it goes on at the engine, and `errors` tells how far it is. With a
        role: status 404 and not_found from an engine whose version cannot do that, here and below."""
        part = "" if error_id is None else f"/{error_id}"
        path = f"{_path(stream_id, destination)}/errors{part}/execute"
        return await self._read(ExecutionReport, "POST", *_as(path, role))

    async def execute_cause(
        self, stream_id: str, destination: str, cause: str, role: str | None = None
    ) -> ExecutionReport:
        path = f"{_path(stream_id, destination)}/errors/causes/{cause}/execute"
        return await self._read(ExecutionReport, "POST", *_as(path, role))

    async def dry_run_error(self, stream_id: str, destination: str, error_id: int, role: str | None = None) -> DryRun:
        """Raises EngineFailure with status 409 where it waits behind another one."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        path = f"{_path(stream_id, destination)}/errors/{error_id}/dry-run"
        return await patient._read(DryRun, "POST", *_as(path, role))

    async def delete_error(self, stream_id: str, destination: str, error_id: int) -> None:
        patient = self._patient(DISCARD_TIMEOUT_SECONDS)
        await patient._request("DELETE", f"{_path(stream_id, destination)}/errors/{error_id}")

    async def conflicts(self, stream_id: str, destination: str, which: dict[str, Any]) -> LoggedConflicts:
        """A page of the conflict log; `which` is the search's body. Status 404 and not_found: the engine's version has
        none, here and below."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        return await patient._read(LoggedConflicts, "POST", f"{_path(stream_id, destination)}/conflicts/search", which)

    async def conflict_counts(self, stream_id: str, destination: str) -> ConflictCounts:
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        return await patient._read(ConflictCounts, "GET", f"{_path(stream_id, destination)}/conflicts")

    async def kept_log(self, stream_id: str) -> KeptLog:
        """Raises EngineFailure with search_refused where the stream's log cannot be searched there, and not_found from
        an engine whose version cannot search, here and below."""
        return await self._read(KeptLog, "GET", f"/v1/streams/{stream_id}/searches")

    async def begin_search(self, stream_id: str, wanted: dict[str, Any]) -> EngineSearch:
        """Raises EngineFailure with status 400 where `wanted` does not fit the table, 503 while too many run."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        return await patient._read(EngineSearch, "POST", f"/v1/streams/{stream_id}/searches", wanted)

    async def search(self, stream_id: str, search_id: str, after: int, limit: int, *, whole: bool) -> FoundChanges:
        """With the changes of higher numbers than `after`. `whole`: values up to 64 KiB, else up to 1 KiB."""
        patient = self._patient(CONTENTS_TIMEOUT_SECONDS)
        query = f"after={after}&limit={limit}{'&whole=1' if whole else ''}"
        return await patient._read(FoundChanges, "GET", f"/v1/streams/{stream_id}/searches/{search_id}?{query}")

    async def end_search(self, stream_id: str, search_id: str) -> None:
        """The engine forgets it, too."""
        await self._request("DELETE", f"/v1/streams/{stream_id}/searches/{search_id}")

    async def resolve_table(self, stream_id: str, destination: str, how: str, schema: str, table: str) -> None:
        """`how`: copy or accept. Raises EngineFailure with status 409 where that does not resolve its trouble."""
        path = f"{_path(stream_id, destination)}/tables/{how}"
        await self._request("POST", path, {"schema": schema, "table": table})

    def _patient(self, seconds: float) -> "EngineClient":
        return EngineClient(self._http, self._url, self._token, max(self._timeout, seconds))

    async def _read(self, kind: type[Answer], method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        response = await self._request(method, path, body)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            first = error.errors()[0]
            where = "/".join(str(part) for part in first["loc"])
            raise EngineFailure(
                "engine_protocol", f"{path}: {where}: {first['msg']}.",
                "Run the engine and the control plane in the same version.", response.status_code,
            ) from error  # fmt: skip

    async def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        repeatable = method in REPEATABLE_METHODS or path in REPEATABLE_PATHS
        try:
            try:
                response = await self._send(method, path, body, {} if repeatable else {ONCE: True})
            except BROKEN:
                # The connection was kept from an earlier request, and the engine closed it as this one was sent.
                if not repeatable:
                    raise
                response = await self._send(method, path, body, {})
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            failure = _silence(self._url, error, reads=method == "GET")
            failure.perhaps_done = method != "GET" and not isinstance(error, NOT_SENT)
            raise failure from error
        if response.is_success:
            return response
        failure = _refusal(response, path)
        # The engine's own connection broke; or something in between answered in its place.
        foreign = failure.code == "engine_refused" and response.is_server_error
        failure.perhaps_done = method != "GET" and (foreign or failure.code == ErrorCode.CONNECTION_LOST)
        raise failure

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None, extensions: dict[str, Any]
    ) -> httpx.Response:
        outside("an engine")
        headers = {"Authorization": f"Bearer {self._token}"}
        return await self._http.request(
            method, self._url + path, json=body, timeout=self._timeout, headers=headers, extensions=extensions
        )


def _path(stream_id: str, destination: str) -> str:
    return f"/v1/streams/{stream_id}/destinations/{destination}"


def _as(path: str, role: str | None) -> tuple[str, dict[str, Any] | None]:
    """Path and body. Another role has a path of its own: an older engine does not read the body."""
    return (path, None) if role is None else (f"{path}-as", {"role": role})


def _change(stream_id: str, destination: str, error_id: int, number: int, version: str | None = None) -> str:
    query = "" if version is None else f"?version={version}"
    return f"{_path(stream_id, destination)}/errors/{error_id}/changes/{number}{query}"


def _silence(url: str, error: Exception, *, reads: bool) -> EngineFailure:
    reason = str(error) or type(error).__name__
    lowered = reason.lower()
    cure = "Check that thalwegd runs there and that its log has no error."
    if isinstance(error, httpx.ReadTimeout):
        # It took the request: whoever cannot be reached does not get so far.
        reason = "it took the request and has not answered in time: it is still at work, or hangs"
        cure = "Check again in a moment: the request may be done by then. If it is not, check thalwegd's log."
        if reads:
            reason = "it has not answered in time: it is busy, or hangs"
            cure = "Ask again in a moment. If it does not answer then, check thalwegd's log and its host's load."
        return EngineFailure("engine_slow", f"{url} does not answer yet: {ended(reason)}", cure)
    if "certificate" in lowered:
        cure = (
            "Let THALWEG_ENGINE_CA_FILE name the certificate (PEM) that signed the engine's, and enrol the engine "
            "under a host name that its certificate has."
        )
    elif url.startswith("https:") and "ssl" in lowered:
        cure = "Start thalwegd with --tls-cert and --tls-key, or enrol it under an http:// address."
    elif url.startswith("http:") and isinstance(error, httpx.RemoteProtocolError):
        cure = "If thalwegd runs with --tls-cert, enrol it under its https:// address."
    return EngineFailure(ErrorCode.ENGINE_UNREACHABLE, f"{url} does not answer: {ended(reason)}", cure)


def _refusal(response: httpx.Response, path: str) -> EngineFailure:
    try:
        error = response.json()["error"]
        return EngineFailure(
            str(error["code"]), str(error["message"]), str(error.get("cure") or ""), response.status_code,
            str(error.get("sqlstate") or ""),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        cure = "Check that the engine's address is right and that nothing stands in between."
        if response.status_code == httpx.codes.UNAUTHORIZED:
            cure = "The engine's token has changed: delete the engine and enrol it again."
        return EngineFailure(
            "engine_refused",
            f"{path} was answered with status {response.status_code}.",
            cure,
            response.status_code,
        )
