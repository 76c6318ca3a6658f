"""Describes a stream that does not move, as seen from outside: for the message of a test that waited in vain."""

import json
import subprocess
from typing import Any

from harness.cluster import Cluster

WALSENDERS = ("SELECT a.pid, r.state, a.wait_event_type, a.wait_event, r.sent_lsn::text, r.flush_lsn::text "
              "FROM pg_stat_activity a JOIN pg_stat_replication r USING (pid)")


def describe(components: list[dict[str, Any]], source: Cluster) -> str:
    """Components with state and gauges, the source's walsenders, and its sockets with TCP's own counters."""
    states = [f"{component.get('sub_component') or component['name']} {component['state']} "
              f"{json.dumps(component.get('gauges', {}))}"
              for component in components]
    sockets = subprocess.run(["ss", "--tcp", "--numeric", "--info", "--memory", "--options", "state", "established",
                              f"( sport = :{source.port} or dport = :{source.port} )"],
                             capture_output=True, text=True, check=False)
    return "\n".join(["components:", *states, f"walsenders: {source.sql('postgres', WALSENDERS)}",
                      f"sockets of the source: {sockets.stdout or sockets.stderr}"])
