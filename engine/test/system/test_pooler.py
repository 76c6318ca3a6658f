"""A real PgBouncer where a stream expects a database: it is found, and its other users find no trace of the engine."""

import re
from typing import Any

import psycopg
import pytest
from pooler import pgbouncer

from harness.cluster import PASSWORD, Cluster
from harness.scene import Scene
from harness.workspace import free_port, postgres_user

DROPPED = {"ignore_startup_parameters": "options,extra_float_digits,replication"}
# The sessions of this pool look as if another session of an engine had begun them, with all of its settings.
OURS = """connect_query='SET search_path = ''pg_catalog''; SET jit = off; SET statement_timeout = 0;
          SET thalweg.session = ''1'''"""


def state_of_pool(cluster: Cluster, port: int, database: str) -> list[tuple[Any, ...]]:
    """Of the pool's only session, all that it keeps from one user to the next. The name PgBouncer changes by itself."""
    address = re.sub(r"port=\d+", f"port={port}", cluster.conninfo(database, "thalweg"))
    with psycopg.connect(address, autocommit=True, prepare_threshold=None, application_name="other") as connection:
        return connection.execute(
            "SELECT name, setting FROM pg_settings WHERE source IN ('session', 'client') UNION ALL "
            "SELECT name, statement FROM pg_prepared_statements UNION ALL "
            "SELECT 'lock', count(*)::text FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' "
            "UNION ALL SELECT 'mark', current_setting('thalweg.session', true) ORDER BY 1").fetchall()


@pytest.mark.parametrize("side", ["source", "destination"])
@pytest.mark.parametrize(("database", "settings"), [("", {}), ("", DROPPED), (" ".join(OURS.split()), DROPPED)],
                         ids=["refuses", "drops", "hands_on"])
def test_pooler_is_found_and_left_clean(scene: Scene, side: str, database: str, settings: dict[str, str]) -> None:
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY); INSERT INTO item VALUES (1);")
    cluster = scene.source if side == "source" else scene.destination
    port = free_port()
    with pgbouncer(port, f"host=127.0.0.1 port={cluster.port}", {"thalweg": PASSWORD}, postgres_user(), database,
                   **settings):
        before = state_of_pool(cluster, port, scene.database)
        conninfo = {name: getattr(scene, f"{name}_conninfo") for name in ("source", "destination")}
        conninfo[side] = conninfo[side].replace(f"port={cluster.port} ", f"port={port} ")
        scene.engine.add_stream(scene.stream, conninfo["source"], conninfo["destination"], [("public", "item")])
        error = scene.engine.wait_aborted(scene.stream)
        assert (error["code"], error["side"]) == ("connection_pooler", side), error
        assert "host and port of the database server itself" in error["cure"]
        assert state_of_pool(cluster, port, scene.database) == before
    scene.assert_nothing_left()
