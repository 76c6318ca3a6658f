"""The role that each operation needs. Without an entry here, anybody with a login could read a new operation."""

import inspect
import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from tests.conftest import PASSWORD, Users, make_client
from thalweg import api
from thalweg.kernel.context import SAFE_METHODS

OPEN = "engines_enrol health_live health_ready session_create session_verify_code"
METRICS = "health_metrics"
OPERATOR = """advisor_cures_apply advisor_cures_undo advisor_runs_create advisor_runs_delete advisor_runs_update
advisor_schedules_create advisor_schedules_delete advisor_schedules_update alert_channels_test alert_deliveries_retry
alert_rules_delete_stream alert_rules_update alert_rules_update_stream alert_silences_create alert_silences_delete
alerts_acknowledge alerts_unacknowledge changes_find databases_create databases_delete databases_test
databases_test_unsaved databases_update destinations_add destinations_drop destinations_retry destinations_start
destinations_stop destinations_update lab_causes_start lab_causes_stop lab_load_change lab_reset preflights_run
searches_create searches_delete searches_export searches_get searches_list searches_undo slots_drop
stream_conflicts_export stream_conflicts_get stream_errors_delete stream_errors_dry_run stream_errors_edit
stream_errors_execute stream_errors_execute_all stream_errors_get stream_errors_restore stream_markers_create
stream_tables_accept stream_tables_copy stream_tables_follow stream_tables_remove streams_check_rules streams_create
streams_delete streams_retry streams_start streams_stop streams_test_rules streams_update"""
ADMIN = """access_policy_get access_policy_update advisor_policy_update alert_channels_create alert_channels_delete
alert_channels_update audit_changes audit_list engines_delete engines_drop_stream engines_update enrolments_create
users_create users_delete users_get users_list users_reset_second_factor users_update"""
OF_ONES_OWN = """session_delete streams_preview_tables tokens_create tokens_revoke users_change_password
users_confirm_second_factor users_prepare_second_factor users_remove_second_factor users_renew_recovery_codes"""
"""Changes that every user may make: of what is their own, and previews."""


def routes() -> Iterator[tuple[str, APIRoute]]:
    """With the path's beginning."""
    for router in (value for value in vars(api).values() if isinstance(value, APIRouter)):
        prefix = "" if router in (api.health, api.scraped) else api.API_PREFIX
        for route in router.routes:
            assert isinstance(route, APIRoute)
            yield prefix, route


def role_of(dependant: Dependant) -> str:
    """Of the `require` among the dependencies; of several the highest would count, but there is only one."""
    found = []
    for inner in dependant.dependencies:
        assert inner.call is not None
        names = inspect.getclosurevars(inner.call).nonlocals if inspect.isfunction(inner.call) else {}
        found += [str(names["role"])] if "also_confined" in names else []
        found += [role for role in [role_of(inner)] if role]
    assert len(found) <= 1
    return found[0] if found else ""


def test_every_operation_has_the_role_that_it_is_meant_for() -> None:
    roles: dict[str, set[str]] = {"": set(), "metrics": set(), "viewer": set(), "operator": set(), "admin": set()}
    reads = set()
    for _, route in routes():
        assert route.operation_id is not None
        roles[role_of(route.dependant)].add(route.operation_id)
        if route.methods <= SAFE_METHODS:
            reads.add(route.operation_id)
    assert roles[""] == set(OPEN.split())
    assert roles["metrics"] == set(METRICS.split())
    assert roles["operator"] == set(OPERATOR.split())
    assert roles["admin"] == set(ADMIN.split())
    assert roles["viewer"] - reads == set(OF_ONES_OWN.split())


def changes() -> Iterator[tuple[str, str, str]]:
    """(method, an address, operation) of all operations that change something and need a login."""
    for prefix, route in routes():
        for method in route.methods - SAFE_METHODS:
            if route.operation_id not in OPEN.split():
                address = re.sub(r"\{(error|run|cure|alert|delivery|schedule)_id\}", "1", prefix + route.path)
                address = address.replace("{destination_id}", "a").replace("{rule_id}", "engine_unreachable")
                yield method, re.sub(r"\{\w+\}", "abcdefgh", address), str(route.operation_id)


async def test_no_change_goes_through_by_a_cookie_alone(app: FastAPI, users: Users) -> None:
    async with make_client(app) as browser:
        assert (await browser.post("/api/v1/session", json={"name": "admin", "password": PASSWORD})).status_code == 201
        for method, address, operation in changes():
            answer = await browser.request(method, address, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "csrf_token_invalid"), operation
        # Another site's form can send no JSON; a cookie that it sets is nobody's.
        text = {"Content-Type": "text/plain"}
        body = f'{{"name": "admin", "password": "{PASSWORD}"}}'
        assert (await browser.post("/api/v1/session", content=body, headers=text)).status_code in (415, 422)


@pytest.mark.parametrize(("role", "beyond"), [("viewer", OPERATOR + " " + ADMIN), ("operator", ADMIN)])
async def test_a_role_is_refused_what_is_beyond_it(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, role: str, beyond: str
) -> None:
    client = {"viewer": viewer, "operator": operator}[role]
    for method, address, operation in changes():
        if operation in beyond.split():
            answer = await client.request(method, address, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), operation
