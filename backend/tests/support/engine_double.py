"""Stands in for thalwegd at the HTTP boundary: serves the shapes of engine/contract's example files."""

import asyncio
import copy
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.contract import example
from tests.support.parked_changes import ParkedChanges
from tests.support.searches_double import SearchesDouble
from thalweg.engine_client.error_codes import ErrorCode

TOKEN = "the-engine-s-control-token"
CAUSES = {"apply_failed": "23a5", "parked_behind": "be41"}
"""Of the transactions in its error queue: their codes, and the causes' ids."""
SHARED = ("status", "phase", "error", "retry_at")


def _components_of(destination: dict[str, Any], whole: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of one destination."""
    capture, _, *apply = whole
    parts = [{**capture, "type": "PROPAGATION SENDER", "name": "propagation"}] if "send_to" in destination else apply
    if destination["backlog"]:
        parts = [example("stats.fanout")["components"][-1], *parts]
    return [{**part, "destination": destination["id"]} for part in parts]


@dataclass
class Identity:
    """An identity that the control plane has put; a test may let it end earlier."""

    certificate: str
    ca: str
    not_after: datetime


class EngineDouble(ParkedChanges):
    """`phase`, `status` and `error` say what it reports for every stream that is desired ENABLED."""

    def __init__(self) -> None:
        super().__init__()
        self.desired: dict[str, Any] = {"revision": 0, "streams": []}
        self.documents: list[dict[str, Any]] = []
        self.status, self.phase = "ENABLED", "REPLICATING"
        self.error: dict[str, Any] | None = None
        self.copy_finished = True
        self.copied_at = example("status")["streams"][0]["destinations"][0]["instantiation"]["started_at"]
        self.takes_documents = True
        self.drop_hangs = False
        self.waits = False
        """Whether it waits for somebody at a server, as the contract's example does."""
        self.retried: list[str] = []
        self.executed: list[int] = []
        self.roles: list[str] = []
        """As which transactions were executed or tried, where that was asked for."""
        self.deleted: list[int] = []
        self.tried: list[int] = []
        self.dry_run_succeeds = True
        self.dry_run_settled = 0
        self.edits: dict[int, dict[str, Any]] = {}
        """By the change's number, of any transaction."""
        self.knows_edits = True
        self.edited_meanwhile: dict[int, dict[str, Any]] = {}
        """By somebody else, after the control plane has looked and before it decides."""
        self.ticks = 0
        self.started_at = example("status")["engine"]["started_at"]
        self.listen: str | None = None
        self.knows_identities = True
        self.identities: list[Identity] = []
        self.key: ec.EllipticCurvePrivateKey | None = None
        self.positions: dict[str, str] = {}
        self.destinations: dict[str, dict[str, Any]] = {}
        """Overrides of a destination's status, by its id."""
        self.wal_archives: list[str] = []
        self.kind_change: dict[str, Any] | None = None
        self.knows_kind_changes = True
        self.takes_effect: bool | None = True
        """Whether the last document is at work. None: it does not tell, as older engines."""
        self.effect_from = "0/1A00000"
        self.recorded: list[dict[str, Any]] | None = None
        self.rehearsal_problems: list[dict[str, Any]] = []
        self.rehearsed: dict[str, Any] = {}
        self.knows_rules = self.knows_policies = True
        self.rule_problems: list[dict[str, Any]] = []
        self.recent_refusal: tuple[int, str, str] | None = None
        """Status, code and message for whoever asks for changes of a stream; None: they come."""
        self.checked: dict[str, Any] = {}  # the last request to check rules
        self.placed_markers: list[dict[str, Any]] = []
        self.troubles: dict[str, dict[str, Any]] = {}
        """Overrides of a table's status, by its name."""
        self.discarded: dict[str, int] = {}
        """Transactions of the error queue that a table's copy has made obsolete, by its name."""
        self.resolved: list[tuple[str, dict[str, Any]]] = []
        self.parked = 1
        self.counts_parked = False
        """Whether statistics have the number of parked transactions, too."""
        self.why = "duplicate key"
        self.contents_take = 0.0  # seconds
        """How many transactions the error queue holds."""
        self.conflicts = 1
        self.conflict_changes: dict[str, Any] = {}
        """How many entries the conflict log has."""
        self.asked_conflicts: dict[str, Any] = {}
        self.searches = SearchesDouble(self._refuse, example)
        self.execution: dict[str, Any] | None = None
        self.refuses_execution: dict[str, Any] | None = None
        """The error with which it refuses to execute a parked transaction."""

    def app(self) -> Starlette:
        routes = [
            *self.searches.routes(),
            Route("/v1/desired", self._put, methods=["PUT"]),
            Route("/v1/rehearsal", self._rehearse, methods=["POST"]),
            Route("/v1/rules/check", self._check_rules, methods=["POST"]),
            Route("/v1/rules/test", self._test_rules, methods=["POST"]),
            Route("/v1/identity/request", self._request_identity, methods=["POST"]),
            Route("/v1/identity", self._put_identity, methods=["PUT"]),
            Route("/v1/status", self._status),
            Route("/v1/stats", self._stats),
            Route("/v1/stats/history", self._stats_history),
            Route("/v1/streams/{id}/transactions", self._transactions),
            Route("/v1/streams/{id}/markers", self._markers),
            Route("/v1/streams/{id}/markers", self._place_marker, methods=["POST"]),
            Route("/v1/streams/{id}/retry", self._retry, methods=["POST"]),
            Route("/v1/streams/{id}/destinations/{destination}/retry", self._retry, methods=["POST"]),
            Route("/v1/streams/{id}/destinations/{destination}/tables/{how}", self._resolve, methods=["POST"]),
            Route("/v1/streams/{id}/destinations/{destination}/conflicts", self._conflict_counts),
            Route("/v1/streams/{id}/destinations/{destination}/conflicts/search", self._conflicts, methods=["POST"]),
            Route("/v1/streams/{id}/destinations/{destination}/errors", self._errors),
            Route(
                "/v1/streams/{id}/destinations/{destination}/errors/execute{as_role:path}",
                self._execute_all,
                methods=["POST"],
            ),
            Route(
                "/v1/streams/{id}/destinations/{destination}/errors/causes/{cause}/execute{as_role:path}",
                self._execute_cause,
                methods=["POST"],
            ),
            Route(
                "/v1/streams/{id}/destinations/{destination}/errors/{error}/dry-run{as_role:path}",
                self._dry_run,
                methods=["POST"],
            ),
            Route(
                "/v1/streams/{id}/destinations/{destination}/errors/{error}/execute{as_role:path}",
                self._execute,
                methods=["POST"],
            ),
            Route("/v1/streams/{id}/destinations/{destination}/errors/{error}", self._delete, methods=["DELETE"]),
            Route("/v1/streams/{id}/destinations/{destination}/errors/{error}", self._contents),
            Route("/v1/streams/{id}/destinations/{destination}/errors/{error}/dependants", self._dependants),
            Route(
                "/v1/streams/{id}/destinations/{destination}/errors/{error}/changes/{change}",
                self._change,
                methods=["GET", "PUT", "DELETE"],
            ),
        ]
        return Starlette(
            routes=[Route(r.path, self._guarded(r.endpoint), methods=list(r.methods or [])) for r in routes]
        )

    def _guarded(self, endpoint: Any) -> Any:
        async def guarded(request: Request) -> Response:
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return self._refuse(401, "unauthorized", "The token is wrong.")
            return await endpoint(request)

        return guarded

    @staticmethod
    def _refuse(status: int, code: str, message: str) -> JSONResponse:
        known = ErrorCode(code).value  # what no engine says, the double does not say either
        error = {"code": known, "class": "permanent", "title": code, "message": message, "cure": "Do it right."}
        return JSONResponse({"error": error}, status)

    async def _put(self, request: Request) -> Response:
        document = await request.json()
        if document["revision"] < self.desired["revision"] or not self.takes_documents:
            return self._refuse(409, "desired_state_conflict", "The revision is lower than the stored one.")
        own = {stream["id"]: stream for stream in self.desired["streams"]}
        document["streams"] += [own[name] for name in document.pop("kept", []) if name in own]
        document["streams"] += [
            {**own[name], "status": "DROPPED"} for name in document.pop("dropped", []) if name in own
        ]
        kept = {stream["id"] for stream in document["streams"]}
        for stream in self.desired["streams"]:
            if stream["id"] not in kept and stream["status"] != "DROPPED":
                return self._refuse(409, "desired_state_conflict", "A stream is left out that was not dropped.")
        self.desired = document
        self.documents.append(document)
        return JSONResponse({"revision": document["revision"]})

    async def _rehearse(self, request: Request) -> Response:
        self.rehearsed = await request.json()
        return JSONResponse({"problems": self.rehearsal_problems})

    async def _check_rules(self, request: Request) -> Response:
        return await self._refuse_rules(request) or JSONResponse({"problems": self.rule_problems})

    async def _test_rules(self, request: Request) -> Response:
        refused = await self._refuse_rules(request)
        if self.knows_rules and "recent" in self.checked and self.recent_refusal is not None:
            return self._refuse(*self.recent_refusal)
        return refused or JSONResponse({**example("rules-test"), "problems": self.rule_problems})

    async def _refuse_rules(self, request: Request) -> Response | None:
        self.checked = await request.json() if self.knows_rules else {}
        if self.knows_policies or "on_error" not in str(self.checked):
            return None if self.knows_rules else self._refuse(404, "not_found", "There is no such address.")
        return self._refuse(400, "invalid_request", "/tables/0/rules/positive/0/on_error: is not a known field")

    async def _request_identity(self, request: Request) -> Response:
        if not self.knows_identities:
            return self._refuse(404, "not_found", "There is no such address.")
        name = (await request.json())["name"]
        self.key = ec.generate_private_key(ec.SECP256R1())
        csr = x509.CertificateSigningRequestBuilder(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        ).add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        pem = csr.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return JSONResponse({"csr": pem.decode()})

    async def _put_identity(self, request: Request) -> Response:
        body = await request.json()
        certificate = x509.load_pem_x509_certificate(body["certificate"].encode())
        assert self.key is not None
        if certificate.public_key() != self.key.public_key():
            return self._refuse(409, "identity_refused", "The certificate is for another key.")
        self.identities.append(Identity(body["certificate"], body["ca"], certificate.not_valid_after_utc))
        shown = self._propagation()
        return JSONResponse({name: shown[name] for name in ("name", "fingerprint", "not_after")} if shown else {})

    def _propagation(self) -> dict[str, Any] | None:
        if not self.identities:
            return None
        certificate = x509.load_pem_x509_certificate(self.identities[-1].certificate.encode())
        return {
            "name": certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value,
            "listen": self.listen,
            "fingerprint": certificate.fingerprint(hashes.SHA256()).hex(),
            "not_after": self.identities[-1].not_after.isoformat(),
        }

    def _stream_status(self, stream: dict[str, Any]) -> dict[str, Any]:
        shown = copy.deepcopy(example("status")["streams"][0])
        shown["id"] = stream["id"]
        shown["positions"] |= self.positions
        if not self.waits:
            shown["waits"] = []
        shown["rule_counts"] = self._rule_counts(stream, shown["rule_counts"])
        shown["kind_change"] = self.kind_change
        if not self.knows_kind_changes:
            del shown["kind_change"]
        if len(stream["destinations"]) > 1:
            shown["mode"] = "FAN-OUT"
        elif "receive_from" in stream:
            shown["mode"] = "PROPAGATION AND APPLY"
        elif "send_to" in stream["destinations"][0]:
            shown["mode"] = "CAPTURE AND PROPAGATION"
        desired = stream["status"]
        if desired == "ENABLED":
            shown["status"], shown["phase"], shown["error"] = self.status, self.phase, self.error
        else:
            dropped = desired == "DROPPED"
            held = dropped and self.drop_hangs and not stream["force"]
            failed = dropped and self.status == "ABORTED"
            shown["status"] = "DISABLED" if held else self.status if failed else desired
            shown["phase"] = "DROPPING" if held else "STOPPED"
            shown["error"] = self.error if held or failed else None
        shown["destinations"] = [
            self._destination_status(stream, destination) for destination in stream["destinations"]
        ]
        for destination, told in zip(stream["destinations"], shown["destinations"], strict=True):
            if not destination["backlog"]:  # The two say the same.
                told |= {name: shown[name] for name in SHARED}
                told |= self.destinations.get(destination["id"], {})
                shown |= {name: told[name] for name in SHARED}
        return shown

    @staticmethod
    def _rule_counts(stream: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any] | None:
        ruled = [{name: table[name] for name in ("schema", "table")} for table in stream["tables"] if "rules" in table]
        if not ruled or "receive_from" in stream:
            return None
        return {**shown, "tables": [{**shown["tables"][0], **table} for table in ruled]}

    def _destination_status(self, stream: dict[str, Any], destination: dict[str, Any]) -> dict[str, Any]:
        shown = copy.deepcopy(example("status.fanout")["destinations"][0])
        shown |= {"retrying_transactions": 0, "next_retry": None}  # but in a destination of a test
        status = destination["status"] if stream["status"] == "ENABLED" else stream["status"]
        shown |= {"id": destination["id"], "status": status, "phase": self.phase if status == "ENABLED" else "STOPPED"}
        positions = example("status")["streams"][0]["positions"] | self.positions
        shown["positions"] = {name: positions[name] for name in ("applied", "confirmed")}
        if not destination["backlog"]:
            shown["backlog"] |= {"state": "NONE", "frames": 0, "limit_bytes": 0}
        if "send_to" in destination:
            shown |= {"instantiation": None, "tables": [], "counted_since": None}
        else:
            shown |= {"instantiation": self._copy(), "tables": self._tables(stream)}
        shown["rule_counts"] = self._own_rule_counts(stream, destination)
        effect = {**shown.pop("in_effect"), "from": self.effect_from, "revision": self.desired["revision"]}
        if self.takes_effect is not None:
            shown["in_effect"] = effect if self.takes_effect else None
            shown["effects"] = [{"from": effect["from"], "since": effect["since"]}] if self.takes_effect else []
        return shown | self.destinations.get(destination["id"], {})

    @staticmethod
    def _own_rule_counts(stream: dict[str, Any], destination: dict[str, Any]) -> dict[str, Any] | None:
        counts = copy.deepcopy(example("status.fanout")["destinations"][1]["rule_counts"])
        ruled = [{name: rules[name] for name in ("schema", "table")} for rules in destination.get("rules", [])]
        if not ruled or "receive_from" in stream:
            return None
        return {**counts, "tables": [{**counts["tables"][0], **table} for table in ruled]}

    def _copy(self) -> dict[str, Any]:
        copied = copy.deepcopy(example("status")["streams"][0]["destinations"][0]["instantiation"])
        copied["finished_at"] = self.copied_at if self.copy_finished else None
        for table, count in self.discarded.items():
            anew = {"schema": "public", "table": table, "errors_discarded": count, "copied_at": "0/5A3C1F8"}
            copied["tables"].append({**copied["tables"][0], **anew})
        return dict(copied)

    def _tables(self, stream: dict[str, Any]) -> list[dict[str, Any]]:
        pattern = example("status.fanout")["destinations"][0]["tables"][0]
        return [{**pattern, **table, **self.troubles.get(table["table"], {})} for table in stream["tables"]]

    async def _status(self, request: Request) -> Response:
        document = example("status")
        document["engine"]["desired_revision"] = self.desired["revision"]
        document["engine"]["started_at"] = self.started_at
        document["engine"]["propagation"] = self._propagation()
        document["engine"]["wal_archives"] = self.wal_archives
        if not self.knows_identities:
            del document["engine"]["propagation"]
        document["streams"] = [self._stream_status(stream) for stream in self.desired["streams"]]
        return JSONResponse(document)

    async def _stats(self, request: Request) -> Response:
        return JSONResponse(self._sample(datetime.now(UTC)))

    def _sample(self, at: datetime) -> dict[str, Any]:
        """Each one is one second later, and every counter the example's further."""
        self.ticks += 1
        document = example("stats")
        document["sampled_at"] = at.isoformat()
        document["monotonic_ns"] = self.ticks * 1_000_000_000
        document["process"]["cpu_ns"] = self.ticks * 250_000_000
        pattern = document["streams"][0]
        if self.counts_parked:
            pattern["error_queue_transactions"] = self.parked
        for component in pattern["components"]:
            component["counters"] = {name: value * self.ticks for name, value in component["counters"].items()}
            if component["time_ns"]:
                component["time_ns"] = {name: value * self.ticks for name, value in component["time_ns"].items()}
        pattern["latency"]["buckets"] = [[upper, count * self.ticks] for upper, count in pattern["latency"]["buckets"]]
        document["streams"] = [
            {
                **pattern,
                "id": stream["id"],
                "components": self._components(stream, pattern["components"]),
                "destinations": [{**pattern, "id": destination["id"]} for destination in stream["destinations"]],
            }
            for stream in self.desired["streams"]
            if stream["status"] == "ENABLED"
        ]
        return document

    def record(self, at: datetime) -> None:
        """The samples of the time when the collector was away, each one tick later."""
        assert self.recorded is not None
        document = self._sample(at)
        status = example("stats-history")["samples"][0]["streams"][0]
        for stream in document["streams"]:
            stream |= {name: status[name] for name in ("status", "phase", "positions")}
        self.recorded.append(document)

    async def _stats_history(self, request: Request) -> Response:
        if self.recorded is None:
            return self._refuse(404, "not_found", "There is no such address.")
        since = int(request.query_params["since"])
        samples = [
            sample
            for sample in self.recorded
            if datetime.fromisoformat(sample["sampled_at"]).timestamp() * 1e6 > since + 1
        ]
        page = {"engine": {"started_at": self.started_at}, "interval_ms": 1000, "samples": samples[:7]}
        return JSONResponse({**page, "more": len(samples) > 7})

    async def _transactions(self, request: Request) -> Response:
        if not self._known(request):
            return self._refuse(404, "unknown_stream", "There is no such stream.")
        return JSONResponse(example("transactions"))

    async def _markers(self, request: Request) -> Response:
        document = example("markers")
        document["placed"] += self.placed_markers
        return JSONResponse(document)

    async def _place_marker(self, request: Request) -> Response:
        body = await request.json()
        if body["label"] == "refused":
            return self._refuse(409, "marker_refused", "The stream's heartbeat_interval is 0.")
        waits = example("markers")["placed"][2]
        self.placed_markers.append({**waits, **body})
        return JSONResponse({}, 202)

    @staticmethod
    def _components(stream: dict[str, Any], whole: list[dict[str, Any]]) -> list[dict[str, Any]]:
        capture, queue, *_ = whole
        own = [part for destination in stream["destinations"] for part in _components_of(destination, whole)]
        if "receive_from" in stream:
            return [{**capture, "type": "PROPAGATION RECEIVER", "name": "propagation"}, queue, *own]
        return [capture, queue, *own]

    def _known(self, request: Request) -> bool:
        return any(stream["id"] == request.path_params["id"] for stream in self.desired["streams"])

    async def _retry(self, request: Request) -> Response:
        if not self._known(request):
            return self._refuse(404, "unknown_stream", "There is no such stream.")
        parts = request.path_params["id"], request.path_params.get("destination")
        self.retried.append("/".join(part for part in parts if part is not None))
        self.destinations.pop(request.path_params.get("destination", ""), None)
        self.status, self.phase, self.error = "ENABLED", "REPLICATING", None
        return JSONResponse({}, 202)

    async def _resolve(self, request: Request) -> Response:
        table = await request.json()
        if table["table"] not in self.troubles:
            return self._refuse(409, "resolution_refused", "It has no changed partitions.")
        del self.troubles[table["table"]]
        self.resolved.append((request.path_params["how"], table))
        return JSONResponse({}, 202)

    async def _conflict_counts(self, _: Request) -> Response:
        return JSONResponse(example("conflict-counts"))

    async def _conflicts(self, request: Request) -> Response:
        """Of three entries one is no conflict, and one was settled by a statement."""
        self.asked_conflicts = asked = await request.json()
        first = {**example("conflicts")["conflicts"][0], **self.conflict_changes}
        others = [{"action": "statement"}, {"kind": "", "sqlstate": "23514", "action": "skip"}, {}]
        every = [{**first, "id": number, **others[number % 3]} for number in range(self.conflicts, 0, -1)]
        left = [
            entry
            for entry in every
            if (asked["before"] == 0 or entry["id"] < asked["before"])
            and asked.get("kind") in (None, entry["kind"] or "error")
        ][: asked["limit"]]
        more = len(left) == asked["limit"]
        return JSONResponse({"conflicts": left, "next_before": left[-1]["id"] if more else None})

    async def _errors(self, request: Request) -> Response:
        after, limit = int(request.query_params.get("after", "0")), int(request.query_params.get("limit", "100"))
        roots, cause = request.query_params.get("roots") == "1", request.query_params.get("cause")
        left = [
            error
            for error in self._parked()
            if error["id"] > after
            and error["id"] not in self.deleted
            and not (roots and error["code"] == "parked_behind")
            and (cause is None or cause == CAUSES[error["code"]])
        ]
        document = {
            "errors": left[:limit], "total": self.parked, "roots": min(self.parked, 1), "causes": self._causes(),
            "next_after": left[limit - 1]["id"] if len(left) > limit else None, "execution": self.execution,
        }  # fmt: skip
        return JSONResponse(document)

    def _causes(self) -> list[dict[str, Any]]:
        behind = {
            "id": CAUSES["parked_behind"], "code": "parked_behind", "sqlstate": "", "table": "", "object": "",
            "transactions": self.parked - 1, "oldest": self.started_at,
        }  # fmt: skip
        first = {
            **behind, "id": CAUSES["apply_failed"], "code": "apply_failed", "sqlstate": "23505",
            "table": '"public"."t"', "object": "t_pkey", "transactions": 1,
        }  # fmt: skip
        return [cause for cause in (behind, first) if self.parked and cause["transactions"]]

    def _parked(self) -> list[dict[str, Any]]:
        """One, and those that wait behind it."""
        first = {
            "id": 1, "commit_lsn": "0/1", "xid": 7, "lcrs": 3, "tables": ['"public"."t"'], "code": "apply_failed",
            "message": self.why, "sqlstate": "23505", "parked_at": self.started_at,
        }  # fmt: skip
        behind = {"code": "parked_behind", "message": "parked behind", "sqlstate": ""}
        return [first, *({**first, **behind, "id": number + 1} for number in range(1, self.parked))][: self.parked]

    async def _contents(self, request: Request) -> Response:
        error_id = int(request.path_params["error"])
        if error_id > self.parked:
            return self._refuse(404, "unknown_error_transaction", "There is none.")
        await asyncio.sleep(self.contents_take)
        if self.opens_others():
            return self._refuse(503, "database_busy", "Other parked transactions are being opened or tried")
        whole = "whole" in request.query_params
        if whole and not self.knows_whole:
            return self._refuse(400, "invalid_request", "The parameters are after and limit")
        return JSONResponse({**self._opened(error_id), **self.changes_page(request.query_params, whole=whole)})

    def _opened(self, error_id: int) -> dict[str, Any]:
        contents = example("error-contents")
        return {**contents, "error": {**contents["error"], "id": error_id, "edits_version": self.edits_version()}}

    def edits_version(self) -> str | None:
        return f"{crc32(json.dumps(self.edits).encode()):08x}" if self.knows_pages else None

    async def _dependants(self, request: Request) -> Response:
        if not self.knows_pages:
            return self._refuse(404, "not_found", f"There is no {request.method} {request.url.path}")
        after, limit = int(request.query_params["after"]), int(request.query_params["limit"])
        (one,) = example("error-dependants")["dependants"]
        behind = [{**one, **error, "parent": 1, "behind": [1], "behind_total": 1} for error in self._parked()[1:]]
        left = behind[after:]
        return JSONResponse(
            {
                "dependants": left[:limit], "total": len(behind), "behind": [], "behind_total": 0,
                "next_after": after + limit if len(left) > limit else None,
            }
        )  # fmt: skip

    async def _change(self, request: Request) -> Response:
        if not self.knows_edits:
            return self._refuse(404, "not_found", f"There is no {request.method} {request.url.path}")
        error_id, number = int(request.path_params["error"]), int(request.path_params["change"])
        if error_id > self.parked or number > self.changes:
            return self._refuse(404, "unknown_error_transaction", "There is none.")
        if request.method != "GET":
            self.edits.update(self.edited_meanwhile)
            self.edited_meanwhile = {}
        if request.query_params.get("version", self.edits_version()) != self.edits_version():
            return self._refuse(400, "invalid_request", "The edits are not of this version any more.")
        if request.method == "PUT":
            self.edits[number] = await request.json()
            return Response(status_code=204)
        if request.method == "DELETE":
            self.edits.pop(number, None)
            return Response(status_code=204)
        if self.opens_others():
            return self._refuse(503, "database_busy", "Other parked transactions are being opened or tried")
        contents = self._opened(error_id)
        (change,) = contents["changes"]
        return JSONResponse({**contents, "changes": [{**change, "number": number}]})

    async def _note_role(self, request: Request) -> None:
        assert request.path_params["as_role"] in ("", "-as")
        if request.path_params["as_role"]:
            self.roles.append((await request.json())["role"])

    async def _execute(self, request: Request) -> Response:
        await self._note_role(request)
        if self.refuses_execution is not None:
            return JSONResponse({"error": self.refuses_execution}, 409)
        self.executed.append(int(request.path_params["error"]))
        return JSONResponse({"state": "RUNNING" if (self.execution or {}).get("state") == "RUNNING" else "DONE"}, 202)

    async def _execute_cause(self, request: Request) -> Response:
        await self._note_role(request)
        cause = request.path_params["cause"]
        chosen = [error["id"] for error in self._parked() if CAUSES[error["code"]] == cause]
        if not chosen:
            return self._refuse(404, "unknown_error_transaction", "None has this cause.")
        self.executed += chosen
        return JSONResponse({"state": "DONE"}, 202)

    async def _dry_run(self, request: Request) -> Response:
        await self._note_role(request)
        if int(request.path_params["error"]) > self.parked:
            return self._refuse(404, "unknown_error_transaction", "There is none.")
        self.tried.append(int(request.path_params["error"]))
        succeeds = {"succeeds": True, "error": None, "settled": self.dry_run_settled}
        return JSONResponse(succeeds if self.dry_run_succeeds else example("dry-run"))

    async def _execute_all(self, request: Request) -> Response:
        await self._note_role(request)
        self.executed += [error["id"] for error in self._parked()]
        return JSONResponse({"state": "DONE"}, 202)

    async def _delete(self, request: Request) -> Response:
        if self.deletes:
            self.deleted.append(int(request.path_params["error"]))
        await asyncio.sleep(self.delete_takes)
        if self.delete_status == 409:
            return self._refuse(409, "apply_failed", "The queue is being executed.")
        return Response(status_code=self.delete_status)
