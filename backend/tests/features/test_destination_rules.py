"""Rules of a destination: the engines are told of them beside the stream's, and they are checked as those are."""

import copy
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import Users
from tests.features.test_row_rules import RULED
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import NAMED, ORDERS, trouble, until
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from tests.test_fan_out import reports, two  # noqa: F401
from tests.test_propagation import Enrolled, pair  # noqa: F401

SOUTH = {"name": "south_only", "condition": "region = 'south'"}
OWN: list[dict[str, Any]] = [{**ORDERS, "positive": [SOUTH]}]
OF_ENGINE = [{**ORDERS, "positive": [SOUTH]}]
ANY = {"If-Match": "*"}


def destinations_of(engine: EngineDouble) -> dict[str, dict[str, Any]]:
    streams = engine.desired.get("streams") or [{"destinations": []}]
    return {destination["id"]: destination for destination in streams[0]["destinations"]}


async def test_only_that_destination_has_them(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, **two(registered, reports, row_rules=OWN))
    warehouse, away = stream["destinations"]
    assert (warehouse["row_rules"], warehouse["rule_counts"]) == ([], None)
    assert away["row_rules"] == [
        {
            "scope": "table",
            **ORDERS,
            "positive": [{**SOUTH, "operations": None, "subset": False, "on_error": "stop"}],
            "negative": None,
        }
    ]
    filtered = [{table["table"]: table["filtered"] for table in part["tables"]} for part in (warehouse, away, stream)]
    assert filtered == [{"customers": False, "orders": by_rules} for by_rules in (False, True, True)]
    assert stream["rules"]["row_rules"] == []

    async def sent() -> bool:
        told = destinations_of(engine)
        return "rules" not in told.get("warehouse", {"rules": []}) and told["reports20"]["rules"] == OF_ENGINE

    await eventually(sent)
    assert all("rules" not in table for table in engine.desired["streams"][0]["tables"])
    assert engine.checked["tables"] == [{**ORDERS, "rules": {"positive": [SOUTH]}}]
    pattern = example("desired.rules")["streams"][0]["destinations"][0]["rules"][0]
    assert set(OF_ENGINE[0]) - {"positive"} == set(pattern) - {"negative"}

    async def counted() -> dict[str, Any] | None:
        away = (await operator.get(f"{STREAMS}/{stream['id']}")).json()["destinations"][1]
        return dict(away["rule_counts"]) if away["rule_counts"] else None

    counts = await eventually(counted)
    assert counts["tables"] == [
        {
            **ORDERS,
            "scopes": ["table"],
            "passed": 7,
            "dropped": 3,
            "became_inserts": 0,
            "became_deletes": 2,
            "by_policy": 0,
            "at_source": [],
            "at_engine_because": None,
        }
    ]


async def test_both_engines_are_told(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    alpha, bravo = pair
    destination = {"database_id": registered["destination"], "engine_id": bravo.id, "row_rules": OWN}
    stream = await created(operator, registered, capture_engine_id=alpha.id, destinations=[destination])
    for engine in pair:
        assert engine.double.checked["tables"] == [{**ORDERS, "rules": {"positive": [SOUTH]}}]

    async def told() -> bool:
        streams = [engine.double.desired.get("streams") or [None] for engine in pair]
        return all(found and found["destinations"][0].get("rules") == OF_ENGINE for (found, *_) in streams)

    await eventually(told)
    assert stream["destinations"][0]["row_rules"]


async def test_a_finding_names_the_place(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    engine: EngineDouble,
) -> None:
    engine.rule_problems = [{**example("rules-check")["problems"][0], "rule": SOUTH["name"]}]
    refused = await operator.post(STREAMS, json=body_of(registered, **two(registered, reports, row_rules=OWN)))
    (check,) = [check for check in refused.json()["checks"] if check["id"] == "destination_row_rules"]
    assert check["database_id"] == reports and "the destination would stop" in check["detail"]
    assert [(error["code"], error["pointer"]) for error in refused.json()["errors"]] == [
        ("destination_row_rules", "/destinations/1/row_rules/0/positive/0/condition")
    ]
    elsewhere = [{**OWN[0], "table": "order"}]
    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": elsewhere}]}
    refused = await operator.post(STREAMS, json=body_of(registered, **one))
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/destinations/0/row_rules/0/table"]
    wrong: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": [{**ORDERS}]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, **wrong))
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/destinations/0/row_rules/0"]

    engine.rule_problems = []
    path = f"{STREAMS}/{(await created(operator, registered))['id']}/destinations"
    engine.rule_problems = [{**example("rules-check")["problems"][0], "rule": SOUTH["name"]}]
    refused = await operator.post(path, json={"database_id": reports, "row_rules": OWN})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/row_rules/0/positive/0/condition"]
    refused = await operator.patch(
        f"{path}/warehouse", json={"row_rules": OWN, "accept": ["row_rules_changed"]}, headers=ANY
    )
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/row_rules/0/positive/0/condition"]
    assert refused.status_code == 409


async def test_changed_rules_need_somebody_s_word(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": OWN}]}
    stream = await created(operator, registered, rules=RULED, **one)
    path = f"{STREAMS}/{stream['id']}/destinations/warehouse"
    same = await operator.patch(path, json={"row_rules": OWN}, headers=ANY)
    assert same.status_code == 200, same.text
    # Rules that are not sent stay, as parameters do.
    other = await operator.patch(path, json={"parameters": {"parallelism": 3}}, headers=ANY)
    (destination,) = other.json()["destinations"]
    assert (len(destination["row_rules"]), destination["parameters"]) == (1, {"parallelism": 3})
    asked = await operator.patch(path, json={"row_rules": []}, headers=ANY)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["status"], check["items"]) == ("row_rules_changed", "consent", ["public.orders"])
    assert [error["pointer"] for error in asked.json()["errors"]] == ["/row_rules"]
    changed = copy.deepcopy(OWN)
    changed[0]["positive"][0]["condition"] = "region = 'west'"
    body = {"row_rules": changed, "accept": [check["consent"]]}
    assert (await operator.patch(path, json=body, headers=ANY)).status_code == 409, "that was a consent to other rules"
    stale = await operator.patch(path, json={"row_rules": []}, headers={"If-Match": stream["etag"]})
    assert stale.status_code == 412
    given = await operator.patch(path, json={"row_rules": [], "accept": [check["consent"]]}, headers=ANY)
    (destination,) = given.json()["destinations"]
    assert (destination["row_rules"], destination["parameters"]) == ([], {"parallelism": 3})

    async def sent() -> bool:
        return "rules" not in destinations_of(engine).get("warehouse", {"rules": []})

    await eventually(sent)
    (entry, *_) = await asked_for(admin, stream["id"])
    assert entry["action"] == "destinations_update" and "accepted" in entry["after"]


async def test_the_stream_keeps_the_tables_that_a_destination_has_rules_for(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": OWN}]}
    path = f"{STREAMS}/{(await created(operator, registered, rules=NAMED, **one))['id']}"
    fewer = {"include": NAMED["include"][:1], "exclude": []}
    refused = await operator.patch(path, json={"rules": fewer}, headers=ANY)
    assert refused.status_code == 409 and "public.orders" in refused.json()["errors"][0]["message"]
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/rules"]
    # A table that is renamed takes its rules along.
    called = {"schema": "sales", "table": "purchases"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    await until(operator, path, "RENAMED")
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    (rules,) = followed["destinations"][0]["row_rules"]
    assert (rules["schema"], rules["table"]) == ("sales", "purchases")


async def test_the_command_line_takes_them(
    registered: dict[str, str],
    operator: httpx.AsyncClient,
    engine: EngineDouble,
    collector: Any,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
    tmp_path: Path,
) -> None:
    run = with_token(shell, users)
    await created(operator, registered, name="s")
    file = tmp_path / "rules.json"
    file.write_text('[{"schema": "public", "table": "orders", "positive": [{"name": "south_only"}]}]')
    choice = ["destinations", "rules", "s", "warehouse", "--row-rules", str(file)]
    asked = await run(*choice)
    assert (asked.code, "row_rules_changed" in asked.err) == (1, True)
    assert (await run(*choice, "--accept", "row_rules_changed")).code == 0

    async def shown() -> bool:
        return "RULES AT warehouse OF" in (await run("streams", "show", "s")).out

    await eventually(shown)
