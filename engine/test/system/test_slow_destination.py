"""A destination that stands still: memory stays bounded, the state says why, and nothing is lost."""

import time

from harness.cluster import wait_for
from harness.processes import resident_bytes
from harness.scene import Scene

MIB = 2**20


def test_flow_control_bounds_memory(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE event (id bigint PRIMARY KEY, body text NOT NULL);")
    scene.start_stream(memory_budget_mb=32, queue_memory_mb=2, queue_size=4096)
    resting = resident_bytes(scene.engine.pid)
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE event IN ACCESS EXCLUSIVE MODE")
        for part in range(60):  # about 240 MB of changes, in transactions of a thousand rows
            scene.at_source(f"INSERT INTO event SELECT n + {part * 4000}, repeat(md5(n::text), 30) "
                            "FROM generate_series(1, 4000) n")
        states: set[str] = set()

        def paused() -> bool:
            states.update(scene.engine.component_states(scene.stream))
            return "PAUSED FOR FLOW CONTROL" in states

        wait_for(paused, 30, "a component is PAUSED FOR FLOW CONTROL")
        highest = 0
        for _ in range(15):
            highest = max(highest, resident_bytes(scene.engine.pid))
            time.sleep(0.2)
        blocker.execute("ROLLBACK")
    # The budget, the queue, and as much again for sockets, allocator and code.
    assert highest - resting < 2 * (32 + 2) * MIB + 40 * MIB, f"{highest / MIB:.0f} MiB, {resting / MIB:.0f} at rest"
    scene.wait_applied()
    scene.assert_same()
