"""Parked transactions opened, edited by several operators, and what waits behind them."""

import asyncio
import contextlib
import json
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.test_last_latency import sample_at
from thalweg.db.models import AuditChangesRow
from thalweg.engine_client.client import EngineClient
from thalweg.features.streams.audited_changes import ENTRY_CHARACTERS_MAX
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import ObservedStatus
from thalweg.live.bus import Bus
from thalweg.live.rates import UNKNOWN
from thalweg.live.schemas import Sample

ANY = {"If-Match": "*"}


async def queue_of(client: httpx.AsyncClient, ids: dict[str, str]) -> tuple[dict[str, Any], str]:
    """A stream, and the path of its error queue."""
    stream = await created(client, ids)
    return stream, f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"


async def test_a_change_of_a_parked_transaction_is_edited_or_left_out(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors/1/changes"
    edit = {"values": {"amount": "9.90", "id": None}, "reason": "entered wrong"}
    assert (await viewer.put(f"{path}/1", json=edit)).status_code == 403
    assert (await operator.put(f"{path}/1", json=edit, headers=ANY)).status_code == 204
    assert engine.edits == {1: edit}
    left_out = {"left_out": True, "reason": "a duplicate"}
    assert (await operator.put(f"{path}/1", json=left_out, headers=ANY)).status_code == 204
    assert engine.edits == {1: left_out}
    assert (await viewer.delete(f"{path}/1")).status_code == 403
    assert (await operator.delete(f"{path}/1", headers=ANY)).status_code == 204
    assert engine.edits == {}
    assert (await operator.put(f"{path}/2", json=edit, headers=ANY)).status_code == 404
    shown = (await operator.get(path.removesuffix("/changes"))).json()
    assert (shown["changes"][0]["number"], shown["error"]["edited"]) == (1, 1)
    assert shown["changes"][0]["edit"]["values"] == {"amount": "9.90"}

    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    _, restored, skipped, edited = entries[:4]
    assert restored["sentence"] == "Change 1 of parked transaction 1 taken back as it came"
    assert skipped["sentence"] == "Change 1 of parked transaction 1 left out"
    assert skipped["after"]["reason"] == "a duplicate"
    amount = skipped["before"]["changes"][0]["columns"][1]
    assert (amount["name"], amount["wanted"]["text"]) == ("amount", "19.90"), "the row stays readable"
    assert edited["sentence"] == "Change 1 of parked transaction 1 given other values"
    assert (edited["after"]["values"], edited["after"]["reason"]) == (edit["values"], "entered wrong")
    assert edited["before"]["changes"][0]["columns"][1]["wanted"]["text"] == "19.90"


def at_rest(stream_id: str, destination_id: str, count: int | None, status: str) -> Sample:
    sample = sample_at(now(), UNKNOWN)
    own = {"destination_id": destination_id, "status": ObservedStatus(status), "error_queue_transactions": count}
    destinations = [sample.destinations[0].model_copy(update=own)]
    update = {"stream_id": stream_id, "destinations": destinations, "error_queue_transactions": count}
    return sample.model_copy(update=update)


async def test_the_number_of_parked_transactions_stays_known_while_a_stream_rests(
    operator: httpx.AsyncClient, resources: Resources, registered: dict[str, str], engine: EngineDouble
) -> None:
    """Until somebody works through them."""
    stream, path = await queue_of(operator, registered)
    ids, bus = (stream["id"], stream["destinations"][0]["id"]), Bus(resources.redis)

    async def shown(count: int | None, status: str) -> list[int | None]:
        (sample,) = await bus.with_last_parked([at_rest(*ids, count, status)])
        await bus.add_samples([sample], 10)
        read = (await operator.get(f"{STREAMS}/{ids[0]}")).json()
        return [read["error_queue_transactions"], read["destinations"][0]["error_queue_transactions"]]

    assert await shown(None, "DISABLED") == [None, None], "never known"
    assert await shown(2, "ENABLED") == [2, 2]
    await shown(None, "DROPPED")
    assert await shown(None, "DISABLED") == [None, None], "it has come again, with the same id"
    assert await shown(2, "ENABLED") == [2, 2]
    for status in ("DISABLED", "ABORTED"):
        assert await shown(None, status) == [2, 2]
    for status in ("ENABLED", "UNKNOWN"):
        assert await shown(None, status) == [None, None], "something may apply there"
    edit = {"left_out": True, "reason": "a duplicate"}
    assert (await operator.put(f"{path}/1/changes/1", json=edit, headers=ANY)).status_code == 204
    assert await shown(None, "DISABLED") == [2, 2], "as many as before"
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204
    assert await shown(None, "DISABLED") == [None, None]


async def test_an_edit_that_does_not_fit_the_change_is_refused(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors/1/changes/1"

    async def refusal(**body: object) -> dict[str, Any]:
        answer = await operator.put(path, json=body, headers=ANY)
        assert answer.status_code == 422, answer.text
        return dict(answer.json())

    unknown = await refusal(values={"amount": "1", "no/such": "x"}, reason="typed wrong")
    (problem,) = unknown["errors"]
    assert (problem["pointer"], problem["code"]) == ("/values/no~1such", "unknown_column")
    assert "amount, id" in problem["cure"]
    assert (await refusal(left_out=True, reason="no"))["errors"][0]["pointer"] == "/reason"
    await refusal(left_out=True)
    await refusal(reason="neither of them")
    await refusal(left_out=True, values={"amount": "1"}, reason="both of them")
    await refusal(values={"amount": "\0"}, reason="a zero byte")
    await refusal(values={"amount": 1}, reason="not in text form")
    await refusal(values={"amount": "x" * 100_001}, reason="too long")
    assert engine.edits == {}
    engine.knows_edits = False
    old = (await operator.put(path, json={"left_out": True, "reason": "an older engine"})).json()
    assert (old["code"], "Upgrade it" in old["cure"]) == ("engine_refused", True)


async def test_a_transaction_is_opened_page_by_page(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream, path = await queue_of(operator, registered)
    engine.changes = 250
    first = (await operator.get(f"{path}/1")).json()
    assert [change["number"] for change in first["changes"]] == list(range(1, 101))
    assert (first["changes_total"], first["next_after"], first["error"]["failed_change"]) == (250, 100, 1)
    part = (await operator.get(f"{path}/1", params={"after": 200, "limit": 50})).json()
    assert ([change["number"] for change in part["changes"]], part["next_after"]) == (list(range(201, 251)), None)
    assert (await operator.get(f"{path}/1", params={"limit": 101})).status_code == 422
    assert (await operator.get(f"{path}/1", params={"after": -1})).status_code == 422
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    opened = [entry["after"] for entry in entries if entry["action"] == "stream_errors_get"]
    assert [facts.get("after") for facts in opened] == [200, None]
    engine.knows_pages = False
    older = await operator.get(f"{path}/1", params={"after": 200})
    assert (older.json()["code"], "only the first 100 changes" in older.json()["detail"]) == ("engine_refused", True)
    assert (await operator.get(f"{path}/1")).status_code == 200


async def test_two_operators_do_not_undo_each_others_decisions(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.changes = 3
    one, left_out = f"{path}/1/changes/1", {"left_out": True, "reason": "a duplicate"}
    assert (await operator.put(one, json=left_out)).status_code == 428
    assert (await operator.delete(one)).status_code == 428
    seen = {"If-Match": (await operator.get(f"{path}/1")).json()["error"]["etag"]}
    assert (await admin.put(f"{path}/1/changes/2", json=left_out, headers=seen)).status_code == 204
    edit = {"values": {"amount": "2"}, "reason": "a price"}
    stale = await operator.put(one, json=edit, headers=seen)
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_resource")
    assert (
        "admin has decided about its changes since you read it: change 2 was left out at 20" in stale.json()["detail"]
    )
    assert (await operator.delete(f"{path}/1/changes/2", headers=seen)).status_code == 412
    assert engine.edits == {2: left_out}

    seen = {"If-Match": (await operator.get(f"{path}/1")).json()["error"]["etag"]}
    engine.edited_meanwhile = {3: left_out}
    raced = await operator.put(one, json=edit, headers=seen)
    assert (raced.status_code, set(engine.edits)) == (412, {2, 3}), "it was decided after the control plane had looked"
    (entry, *_) = (await admin.get("/api/v1/audit")).json()["items"]
    assert (entry["action"], entry["after"]["refused"]) == ("stream_errors_edit", "stale_resource")
    seen = {"If-Match": (await operator.get(f"{path}/1")).json()["error"]["etag"]}
    assert (await operator.put(one, json=edit, headers=seen)).status_code == 204
    assert engine.edits[1] == edit


async def test_an_engine_that_knows_no_versions_is_not_asked_for_them(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.knows_pages = False
    opened = (await operator.get(f"{path}/1")).json()
    assert opened["error"]["etag"] is None
    left_out = {"left_out": True, "reason": "a duplicate"}
    assert (await operator.put(f"{path}/1/changes/1", json=left_out)).status_code == 204
    assert engine.edits == {1: left_out}


async def test_what_waits_behind_a_transaction_is_shown_as_a_tree(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.parked = 6
    tree = (await operator.get(f"{path}/1/dependants", params={"limit": 3})).json()
    assert (tree["total"], [item["id"] for item in tree["dependants"]]) == (5, [2, 3, 4])
    first = tree["dependants"][0]
    assert (first["parent"], first["behind"], first["behind_total"], first["message"]) == (1, [1], 1, "parked behind")
    rest = (await operator.get(f"{path}/1/dependants", params={"cursor": tree["next_cursor"]})).json()
    assert ([item["id"] for item in rest["dependants"]], rest["next_cursor"]) == ([5, 6], None)
    seen = (await viewer.get(f"{path}/1/dependants")).json()
    assert {item["message"] for item in seen["dependants"]} == {None}, "messages quote rows"
    engine.knows_pages = False
    older = (await operator.get(f"{path}/1/dependants")).json()
    assert (older["code"], "Upgrade it" in older["cure"]) == ("engine_refused", True)


async def test_the_audit_log_tells_a_dry_runs_outcome_and_its_role(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream, path = await queue_of(operator, registered)
    as_clerk = {"role": "clerk"}
    engine.dry_run_settled = 2
    tried = (await operator.post(f"{path}/1/dry-run", json=as_clerk)).json()
    assert (tried["succeeds"], tried["settled"]) == (True, 2)
    engine.dry_run_succeeds = False
    assert (await operator.post(f"{path}/1/dry-run", json={})).json()["succeeds"] is False
    assert (await operator.post(f"{path}/1/execute", json=as_clerk)).status_code == 202
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    executed, failing, fitting = entries[:3]
    assert fitting["sentence"] == "Parked transaction 1 tried as clerk and rolled back: it would be applied"
    assert failing["sentence"] == "Parked transaction 1 tried and rolled back: it would fail (23505)"
    assert (failing["after"]["code"], failing["after"]["sqlstate"]) == ("apply_conflict", "23505")
    assert executed["sentence"] == "Parked transaction 1 executed again as clerk"


async def discarded_of(admin: httpx.AsyncClient, stream_id: str) -> dict[str, Any]:
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream_id})).json()["items"]
    return next(entry for entry in entries if entry["action"] == "stream_errors_delete")


async def test_the_audit_log_keeps_the_changes_of_a_discarded_transaction(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream, path = await queue_of(operator, registered)
    engine.changes = 250
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204
    entry = await discarded_of(admin, stream["id"])
    assert (entry["before"]["changes_total"], entry["after"]["changes_kept"]) == (250, 250)
    assert entry["after"]["finished"]
    assert len(json.dumps(entry)) < 2 * ENTRY_CHARACTERS_MAX
    kept = await admin.get(f"/api/v1/audit/{entry['id']}:changes")
    assert kept.headers["content-type"].startswith("application/x-ndjson")
    changes = [json.loads(line) for line in kept.text.splitlines()]
    assert [change["number"] for change in changes] == list(range(1, 251))
    assert changes[249]["columns"][1]["wanted"]["text"] == "19.90"
    assert (await operator.get(f"/api/v1/audit/{entry['id']}:changes")).status_code == 403
    other = next(
        entry
        for entry in (await admin.get("/api/v1/audit")).json()["items"]
        if entry["action"] != "stream_errors_delete"
    )
    assert (await admin.get(f"/api/v1/audit/{other['id']}:changes")).json()["code"] == "not_found"


async def test_a_part_of_a_transaction_is_kept_only_where_that_is_asked_for(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    engine.changes = 250
    change = len(json.dumps((await operator.get(f"{path}/1")).json()["changes"][0]))
    for limit, value, kept, because in (
        ("KEPT_CHANGES_MAX", 240, 240, "no more than 240"),
        ("KEPT_BYTES_MAX", 120 * change, 120, "no more than 0 MiB"),
        ("KEEPING_SECONDS_MAX", -1, 100, "no more could be read in -1 s"),
    ):
        with monkeypatch.context() as limited:
            limited.setattr(f"thalweg.features.streams.discarding.{limit}", value)
            engine.deleted.clear()
            why = {"reason": f"beyond {limit}"}
            refused = await operator.delete(f"{path}/1", params=why)
            assert (refused.status_code, refused.json()["code"], engine.deleted) == (409, "not_kept_whole", [])
            assert "its 250 changes" in refused.json()["detail"]
            entry = await discarded_of(admin, stream["id"])
            assert (entry["after"]["refused"], entry["after"]["changes_kept"]) == ("not_kept_whole", 0)
            assert (await operator.delete(f"{path}/1", params={**why, "partly": True})).status_code == 204
            assert engine.deleted == [1]
        entry = await discarded_of(admin, stream["id"])
        assert (entry["before"]["changes_total"], entry["after"]["finished"]) == (250, True)
        changes = (await admin.get(f"/api/v1/audit/{entry['id']}:changes")).text.split("\n")[:-1]
        assert kept * 0.9 < len(changes) <= kept
        assert [json.loads(change)["number"] for change in changes] == list(range(1, len(changes) + 1))
        words = f"Parked transaction 1 discarded, {len(changes)} of 250 changes kept ({because})"
        assert entry["sentence"] == words


async def kept_of(admin: httpx.AsyncClient, entry: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await admin.get(f"/api/v1/audit/{entry['id']}:changes")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_the_audit_log_keeps_whole_values(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream, path = await queue_of(operator, registered)
    engine.changes = 250
    engine.texts = {1: "9" * 300_000, 130: "8" * 2000, 250: "7" * 5_000_000}
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204
    entry = await discarded_of(admin, stream["id"])
    assert (entry["after"]["changes_kept"], "values_cut" in entry["after"]) == (250, False)
    first = entry["before"]["changes"][0]["columns"][1]["wanted"]
    assert (first["text"], first["cut"], first["bytes"]) == ("9" * 1024, True, 300_000), "lists stay short"
    changes = await kept_of(admin, entry)
    assert [change["number"] for change in changes] == list(range(1, 251))
    for number, text in engine.texts.items():
        wanted = changes[number - 1]["columns"][1]["wanted"]
        assert (wanted["text"] == text, wanted["cut"]) == (True, False)


@pytest.mark.parametrize("whole_page", [1, 7, 60])
async def test_pages_that_large_values_end_early_lose_no_change(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    whole_page: int,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    engine.changes, engine.whole_page = 130, whole_page
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204
    changes = await kept_of(admin, await discarded_of(admin, stream["id"]))
    assert [change["number"] for change in changes] == list(range(1, 131))


async def test_an_engine_that_opens_others_is_asked_again(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.changes, engine.busy_openings = 900, 3
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204
    assert engine.deleted == [1]


@pytest.mark.parametrize("older", [True, False])
async def test_a_value_that_comes_cut_is_never_taken_for_whole(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    older: bool,
) -> None:  # fmt: skip
    """An engine of an earlier version refuses to tell more; a later one has a bound."""
    stream, path = await queue_of(operator, registered)
    engine.changes, engine.texts = 250, {120: "9" * 4096}
    engine.knows_whole, engine.always_cut = not older, {120}
    why = {"reason": "entered twice"}
    refused = await operator.delete(f"{path}/1", params=why)
    assert (refused.status_code, refused.json()["code"], engine.deleted) == (409, "not_kept_whole", [])
    assert "of a value of amount in orders, the engine tells 1.0 KiB of 4.0 KiB" in refused.json()["detail"]
    entry = await discarded_of(admin, stream["id"])
    assert entry["sentence"] == "Parked transaction 1 discarded: refused"
    assert (await operator.delete(f"{path}/1", params={**why, "partly": True})).status_code == 204
    entry = await discarded_of(admin, stream["id"])
    assert (entry["after"]["changes_kept"], entry["after"]["values_cut"]) == (250, 1)
    assert entry["sentence"] == "Parked transaction 1 discarded, 1 of its values cut"
    changes = await kept_of(admin, entry)
    assert [change["number"] for change in changes if change["columns"][1]["wanted"]["cut"]] == [120]
    engine.deleted.clear()
    engine.texts = {}
    assert (await operator.delete(f"{path}/1", params=why)).status_code == 204, "short values are whole"


async def test_an_older_engine_shows_only_the_first_changes(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.changes, engine.knows_pages, engine.knows_whole = 250, False, False
    refused = (await operator.delete(f"{path}/1", params={"reason": "an older engine"})).json()
    assert (refused["code"], engine.deleted) == ("not_kept_whole", [])
    engine.changes = 100
    assert (await operator.delete(f"{path}/1", params={"reason": "an older engine"})).status_code == 204


async def test_a_discard_that_was_interrupted_does_not_claim_to_be_done(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)

    async def killed(*_: Any) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(EngineClient, "delete_error", killed)
    with contextlib.suppress(httpx.HTTPError, asyncio.CancelledError):
        await operator.delete(f"{path}/1", params={"reason": "the API ends meanwhile"})
    entry = await discarded_of(admin, stream["id"])
    assert entry["sentence"] == "Parked transaction 1 discarded: the end is not known"


@pytest.mark.parametrize(("takes", "status"), [(0.6, 204), (0.0, 502)])
@pytest.mark.parametrize("deletes", [True, False])
async def test_a_discard_without_an_answer_is_not_taken_for_refused(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    monkeypatch: pytest.MonkeyPatch, takes: float, status: int, deletes: bool,
) -> None:  # fmt: skip
    """The queue tells what is gone. The engine may still discard a transaction that is there."""
    stream, path = await queue_of(operator, registered)
    engine.changes, engine.deletes, engine.delete_takes, engine.delete_status = 130, deletes, takes, status

    def hasty(client: EngineClient, _: float) -> EngineClient:
        return EngineClient(client._http, client._url, client._token, 0.3)

    if takes:
        monkeypatch.setattr(EngineClient, "_patient", hasty)
    answer = await operator.delete(f"{path}/1", params={"reason": "entered twice"})
    assert answer.status_code == (204 if deletes else 504 if takes else 502), answer.text
    entry = await discarded_of(admin, stream["id"])
    assert (entry["after"]["finished"], "refused" in entry["after"]) == (deletes, False)
    end = "" if deletes else ": the end is not known"
    assert entry["sentence"] == f"Parked transaction 1 discarded{end}"
    assert len(await kept_of(admin, entry)) == 130


async def test_an_engine_is_given_time_to_discard(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.delete_takes = 2.5  # longer than the settings' engine_timeout
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204


async def test_a_change_without_the_destinations_row_is_not_whole(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream, path = await queue_of(operator, registered)
    engine.changes, engine.troubles = 150, dict.fromkeys((120, 121), "not looked for: out of time")
    why = {"reason": "entered twice"}
    refused = (await operator.delete(f"{path}/1", params=why)).json()
    assert (refused["code"], engine.deleted) == ("not_kept_whole", [])
    assert "not looked for: out of time" in refused["detail"]
    assert "version" not in refused["detail"] and refused["cure"].startswith("Try again")
    assert (await operator.delete(f"{path}/1", params={**why, "partly": True})).status_code == 204
    entry = await discarded_of(admin, stream["id"])
    assert (entry["after"]["changes_kept"], entry["after"]["rows_not_read"]) == (150, 2)
    words = "Parked transaction 1 discarded, 2 of its changes kept without the destination's row"
    assert entry["sentence"] == words


async def test_a_passing_failure_is_no_reason_to_keep_a_part(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    engine.busy_openings = 1000
    monkeypatch.setattr("thalweg.features.streams.discarding.KEEPING_SECONDS_MAX", 0.2)
    refused = await operator.delete(f"{path}/1", params={"reason": "entered twice", "partly": True})
    assert (engine.deleted, refused.json()["code"] != "not_kept_whole") == ([], True)
    entry = await discarded_of(admin, stream["id"])
    assert entry["sentence"] == "Parked transaction 1 discarded: refused"


async def test_a_refused_discard_keeps_no_changes(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    resources: Resources,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    engine.changes, engine.deletes, engine.delete_status = 130, False, 409
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 409
    entry = await discarded_of(admin, stream["id"])
    assert (entry["after"]["refused"], entry["after"]["changes_kept"]) == ("apply_failed", 0)
    assert entry["sentence"] == "Parked transaction 1 discarded: refused"
    async with resources.sessions() as session:
        assert (await session.scalars(select(AuditChangesRow.audit_id))).all() == []


async def test_an_engine_that_is_busy_is_said_to_be(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    _, path = await queue_of(operator, registered)
    engine.busy_openings = 2
    busy = {"code": "engine_busy", "title": "The engine is busy", "status": 503, "cure": "Try again in a moment."}
    assert busy.items() <= (await operator.get(f"{path}/1")).json().items()
    edit = {"left_out": True, "reason": "a duplicate"}
    assert busy.items() <= (await operator.put(f"{path}/1/changes/1", json=edit, headers=ANY)).json().items()


async def test_an_export_of_discarded_changes_is_audited(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream, path = await queue_of(operator, registered)
    assert (await operator.delete(f"{path}/1", params={"reason": "entered twice"})).status_code == 204
    entry = await discarded_of(admin, stream["id"])
    assert len(await kept_of(admin, entry)) == 1
    look, *_ = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    assert (look["action"], look["after"]) == ("audit_changes", {"entry_id": entry["id"], "error_id": 1})
    assert (look["sentence"], look["before"]) == ("Changes of discarded transaction 1 exported", None)
