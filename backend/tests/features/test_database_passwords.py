"""A stored password goes to the place that it was given for, and nowhere else."""

from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_databases import PATH
from tests.support.tls import Authority
from thalweg.kernel.context import Resources

ANY = {"If-Match": "*"}


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "localhost"}, {"port": 1}, {"user": "other"}, {"dbname": "other"}, {"sslmode": "disable"},
        {"host": "127.0.0.1,localhost"}, {"options": {"channel_binding": "disable"}},
        {"options": {"ssl_min_protocol_version": "TLSv1"}},
    ],
)  # fmt: skip
async def test_another_place_wants_the_password_again(
    operator: httpx.AsyncClient, sides: Sides, changes: dict[str, Any]
) -> None:
    made = (await operator.post(PATH, json=sides.source)).json()
    path = f"{PATH}/{made['id']}"
    refused = await operator.patch(path, json=changes, headers=ANY)
    assert (refused.status_code, refused.json()["code"]) == (422, "password_required")
    assert refused.json()["errors"][0]["pointer"] == "/password"
    assert "again" in refused.json()["cure"]
    assert (await operator.get(path)).json() == made
    body = {key: value for key, value in {**sides.source, **changes, "password": ""}.items() if key != "name"}
    test = await operator.post(f"{PATH}:test", json={**body, "database_id": made["id"]})
    assert (test.status_code, test.json()["code"]) == (422, "password_required")
    with_password = await operator.patch(path, json={**changes, "password": "anew"}, headers=ANY)
    assert with_password.status_code == 200, with_password.text


async def test_other_trust_wants_the_password_again(operator: httpx.AsyncClient, sides: Sides) -> None:
    trusted = {**sides.source, "sslmode": "require", "sslrootcert": Authority().certificate}
    made = (await operator.post(PATH, json=trusted)).json()
    path = f"{PATH}/{made['id']}"
    for changes in ({"sslrootcert": Authority().certificate}, {"sslrootcert": ""}, {"sslmode": "prefer"}):
        refused = await operator.patch(path, json=changes, headers=ANY)
        assert (refused.status_code, refused.json()["code"]) == (422, "password_required")


async def test_more_tls_and_other_names_keep_it(operator: httpx.AsyncClient, sides: Sides) -> None:
    made = (await operator.post(PATH, json=sides.source)).json()
    path = f"{PATH}/{made['id']}"
    more = {
        "name": "renamed", "sslmode": "verify-full", "sslrootcert": Authority().certificate,
        "options": {"channel_binding": "require", "connect_timeout": "3"},
    }  # fmt: skip
    answer = await operator.patch(path, json=more, headers=ANY)
    assert (answer.status_code, answer.json()["has_password"]) == (200, True)


async def test_tests_of_connections_are_audited(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, sides: Sides, resources: Resources
) -> None:
    body = {key: value for key, value in sides.source.items() if key != "name"}
    await operator.post(f"{PATH}:test", json=body)
    answer = await admin.get("/api/v1/audit")
    (entry,) = [item for item in answer.json()["items"] if item["action"] == "databases_test_unsaved"]
    assert entry["after"] == {
        "host": "127.0.0.1", "port": sides.cluster.port, "dbname": body["dbname"], "user": body["user"], "code": None,
    }  # fmt: skip
    assert body["password"] not in answer.text
