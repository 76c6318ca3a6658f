"""Findings that no recording of the rig has: recorded paths, changed so that another cause slows the same stage."""

import re
from typing import Any

import pytest

from tests.test_advisor_analysis import RUNNING, analysed, parking, recorded
from tests.test_advisor_findings import findings, waiting
from thalweg.advisor.finding import Cure, Finding
from thalweg.advisor.findings.clues import Parameter, StreamFacts
from thalweg.advisor.findings.ranking import find
from thalweg.advisor.streams import Condition
from thalweg.engine_client.error_codes import ErrorSide
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.performance import DestinationFacts, SourceFacts
from thalweg.inspection.sessions import Waits
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.clock import now
from thalweg.live.schemas import Sample, TimePercent

MIB = 1 << 20
SENDER, RECEIVER = "destination:sender", "destination:receiver"
COORDINATOR, SERVER = "APPLY COORDINATOR", "APPLY SERVER"
OF_CHANGES = re.compile(r"commit more changes at a time")


def changed(
    name: str, part: str, time: dict[str, float] | None = None, rates: dict[str, float] | None = None,
    gauges: dict[str, float] | None = None, samples: list[Sample] | None = None,
) -> list[Sample]:  # fmt: skip
    """The recorded path, with other figures of the components of that id or sub-component."""
    found = []
    for sample in samples or recorded(name):
        parts = []
        for component in sample.components:
            if part in (component.id, component.sub_component) and component.counter_rates is not None:
                update: dict[str, Any] = {
                    "counter_rates": {**component.counter_rates, **(rates or {})},
                    "gauges": {**component.gauges, **(gauges or {})},
                }
                if time is not None:
                    update["time_percent"] = TimePercent(**(dict.fromkeys(TimePercent.model_fields, 0.0) | time))
                component = component.model_copy(update=update)
            parts.append(component)
        found.append(sample.model_copy(update={"components": parts}))
    return found


def coded(found: list[Finding]) -> dict[str, Finding]:
    return {finding.code: finding for finding in found}


def figures(finding: Finding) -> dict[str, tuple[object, str, object]]:
    return {item.statistic: (item.value, item.unit, item.threshold) for item in finding.evidence}


def proposals(finding: Finding) -> dict[str, tuple[object, object]]:
    changes = [change for cure in finding.cures for change in cure.parameters]
    return {change.name: (change.current, change.proposed) for change in changes}


def statements(finding: Finding) -> list[tuple[str | None, str | None, str | None]]:
    return [(cure.sql, cure.database, cure.run_as) for cure in finding.cures if cure.kind == "sql"]


def texts(cures: list[Cure]) -> str:
    return " ".join(cure.text for cure in cures)


# --- apply


def test_the_coordinator_is_told_by_itself_where_transactions_are_not_tiny() -> None:
    found = findings("tiny_transactions", samples=changed("tiny_transactions", SERVER, rates={"lcrs": 2e6}))
    told = found[0]
    assert (told.code, told.title, told.is_cause) == ("apply_coordinator_cpu", "The coordinator is fully busy", True)
    assert told.component_id == "k3j2h1g4:apply:destination"
    assert (told.evidence[0].statistic, told.evidence[0].subject) == ("EVENT: CPU", COORDINATOR)
    assert told.evidence[0].series == "destination:coordinator.time_percent.busy"
    per, unit, threshold = figures(told)["MESSAGES PER TRANSACTION"]
    assert (isinstance(per, float) and per > 5, unit, threshold) == (True, "NUMBER", 5.0)
    assert proposals(told) == {"parallelism": (4, 2)}
    assert OF_CHANGES.search(texts(told.cures)) is None, "its transactions are large already"
    assert "two streams" in told.cures[-1].text
    small = Parameter(10, 20000, True, 100_000)
    (with_small_groups, *_) = findings(
        "tiny_transactions", samples=changed("tiny_transactions", SERVER, rates={"lcrs": 2e6}), group_size=small
    )
    assert proposals(with_small_groups) == {"group_size": (10, 20000), "parallelism": (4, 2)}
    (tiny, *_) = findings("tiny_transactions")
    assert (tiny.code, OF_CHANGES.search(texts(tiny.cures)) is None) == ("apply_tiny_transactions", False)


def test_a_coordinator_that_waits_for_the_destination_is_not_said_to_be_busy() -> None:
    asks = changed("tiny_transactions", COORDINATOR, time={"network": 95.0, "busy": 5.0})
    assert {"apply_coordinator_cpu", "apply_tiny_transactions"}.isdisjoint(
        coded(findings("tiny_transactions", samples=asks))
    )


def test_rows_that_are_read_from_disk_are_told_where_working_sessions_wait_for_them() -> None:
    destination = DestinationFacts(now(), waits=waiting(IO_DataFileRead=6, CPU=4), io={"relation reads": 5200.0})
    told = coded(findings("missing_index", destination=destination))["apply_disk_reads"]
    assert (told.title, told.is_cause) == ("The destination reads from disk to find rows", True)
    assert told.component_id == "k3j2h1g4:apply:destination"
    assert figures(told)["WAIT IO:DataFileRead"] == (60.0, "PERCENT", 15.0)
    assert figures(told)["pg_stat_io: relation reads"][0] == 5200.0
    assert "shared_buffers" in told.cures[0].text
    destination.waits = waiting(IO_DataFileRead=1, CPU=9)
    assert "apply_disk_reads" not in coded(findings("missing_index", destination=destination))
    destination.waits = waiting(100.4, IO_DataFileRead=3)
    far = coded(findings("trigger", destination=destination))
    assert ("apply_network" in far, "apply_disk_reads" in far) == (True, False), "the few that work say nothing"


def recording(event: str, looks: int, **others: int) -> Waits:
    waits = waiting(**others)
    waits.recording[event] = looks
    return waits


@pytest.mark.parametrize("name", ["slow_fsync", "trigger", "tiny_transactions"])
def test_a_slow_standby_delays_the_record_of_progress_and_nobody_who_applies(name: str) -> None:
    destination = DestinationFacts(
        now(), waits=recording("IPC:SyncRep", 9, CPU=10),
        settings={"synchronous_standby_names": "far", "synchronous_commit": "on"},
    )  # fmt: skip
    told = coded(findings(name, destination=destination))["apply_standby"]
    assert (told.title, told.is_cause, told.gain_percent) == (
        "The destination's standby confirms the stream's progress slowly", False, None,
    )  # fmt: skip
    assert told.component_id == "k3j2h1g4:apply:destination"
    assert figures(told) == {
        "WAIT IPC:SyncRep": (90.0, "PERCENT", 50.0), "synchronous_standby_names": ("far", "", None),
    }  # fmt: skip
    assert "pg_stat_replication" in (told.cures[0].sql or "")
    assert statements(told) == [
        ("ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();", "warehouse", "a superuser")
    ]
    for waits in (recording("IPC:SyncRep", 4, CPU=10), recording("IO:WALSync", 9, CPU=10)):
        destination.waits = waits
        assert "apply_standby" not in coded(findings(name, destination=destination))


def test_the_flush_of_a_record_of_progress_does_not_make_the_destinations_disk_the_cause() -> None:
    """Appliers set synchronous_commit themselves: what it is for others is no evidence."""
    destination = DestinationFacts(
        now(), waits=recording("IO:WALSync", 10, CPU=10), settings={"synchronous_commit": "on", "fsync": "on"}
    )
    assert "apply_slow_flush" not in coded(findings("slow_fsync", destination=destination))
    destination.waits = waiting(IO_WALSync=2, CPU=8)
    told = coded(findings("slow_fsync", destination=destination))["apply_slow_flush"]
    assert ("fsync" in figures(told), "synchronous_commit" in figures(told)) == (True, False)


OFF = Parameter(False, True, True, None)
CREATED = ("CREATE EXTENSION thalweg_datalayer;", "warehouse", "a superuser")


def test_appliers_that_wait_for_their_turn_to_commit_are_told_where_the_order_is_full() -> None:
    full = {"commit_serialization": Parameter("full", "dependent_transactions", True, None)}
    told = coded(findings("commit_order", **full))["apply_commit_order"]
    assert (told.title, told.is_cause, told.severity) == ("Transactions wait for their turn to commit", True, "warning")
    assert figures(told)["commit_serialization"] == ("full", "", None)
    assert proposals(told) == {"commit_serialization": ("full", "dependent_transactions")}
    other = {"commit_serialization": Parameter("dependent_transactions", "dependent_transactions", True, None)}
    assert "apply_commit_order" not in coded(findings("commit_order", **other))
    assert "apply_commit_order" not in coded(findings("missing_index", **full)), "nobody waits for a turn"


def test_spilled_transactions_are_a_warning_only_where_the_disk_limits() -> None:
    limits = {
        "txn_lcr_spill_threshold": Parameter(100, 100_000, True, 1_000_000),
        "memory_budget_mb": Parameter(512, 512, True, 4096),
    }
    told = coded(findings("spilling", **limits))["apply_spill"]
    assert (told.title, told.is_cause) == ("Apply writes transactions to the engine's disk", True)
    assert told.severity == "warning"
    assert proposals(told) == {"txn_lcr_spill_threshold": (100, 1000), "memory_budget_mb": (512, 1024)}
    also = changed("missing_index", "APPLY READER", rates={"spilled_lcrs": 1000.0})
    beside = coded(findings("missing_index", samples=also, **limits))["apply_spill"]
    assert (beside.is_cause, beside.severity) == (False, "advice")
    assert "apply_spill" not in coded(findings("missing_index", **limits)), "nothing is spilled"


def test_small_groups_are_told_beside_the_cause() -> None:
    size = Parameter(10, 20000, True, 100_000)
    told = coded(findings("missing_index", group_size=size))["apply_small_groups"]
    assert (told.title, told.is_cause) == ("The source's transactions are executed in small groups", False)
    assert figures(told)["group_size"] == (10.0, "LCRS", 1000)
    assert proposals(told) == {"group_size": (10, 20000)}
    assert "apply_small_groups" not in coded(findings("missing_index"))


def data_layer(
    installed: bool, available: bool, failure: ConnectionFailure | None = None, **changes: Parameter
) -> dict[str, Finding]:  # fmt: skip
    facts = DestinationFacts(now(), failure, data_layer_installed=installed, data_layer_available=available)
    return coded(findings("trigger", destination=facts, **changes))


def test_an_extension_that_the_server_has_and_the_database_lacks_is_told() -> None:
    told = data_layer(installed=False, available=True)["apply_data_layer_missing"]
    assert told.title == "The destination could use the extension thalweg_datalayer"
    assert (told.is_cause, told.severity, told.component_id) == (False, "advice", "k3j2h1g4:apply:destination")
    (entry,) = told.evidence
    assert (entry.statistic, entry.subject, entry.value) == (
        "pg_available_extensions", "warehouse", "thalweg_datalayer",
    )  # fmt: skip
    assert statements(told) == [CREATED]
    assert "restart the stream" in told.cures[0].text
    for installed, available in ((True, True), (False, False)):
        assert "apply_data_layer_missing" not in data_layer(installed, available)
    assert "apply_data_layer_missing" not in coded(findings("trigger")), "it was not read"
    assert "apply_data_layer_missing" not in data_layer(installed=False, available=True, data_layer=OFF)


def test_a_write_path_that_is_switched_off_is_told_where_there_is_one() -> None:
    told = data_layer(installed=True, available=True, data_layer=OFF)["apply_data_layer_off"]
    assert told.title == "The fast write path into the destination is switched off"
    assert (told.is_cause, told.severity, told.component_id) == (False, "advice", "k3j2h1g4:apply:destination")
    assert figures(told) == {"data_layer": ("off", "", None)}
    assert (proposals(told), statements(told)) == ({"data_layer": (False, True)}, [])
    assert (told.cures[0].restart_needed, told.cures[0].destination_id) == (False, "destination")
    missing = data_layer(installed=False, available=True, data_layer=OFF)["apply_data_layer_off"]
    assert (proposals(missing), statements(missing)) == ({"data_layer": (False, True)}, [CREATED])
    assert "apply_data_layer_off" not in data_layer(installed=False, available=False, data_layer=OFF)
    assert "apply_data_layer_off" not in data_layer(True, True, data_layer=Parameter(True, True, True, None))
    assert "apply_data_layer_off" in coded(findings("trigger", data_layer=OFF)), "it was not read"
    refused = ConnectionFailure("refused", "It refuses.", "Start it.")
    assert "apply_data_layer_off" in data_layer(False, False, refused, data_layer=OFF), "it is not known"


# --- the source's side, and the network between two engines


def test_a_walsender_that_waits_until_it_may_send_more_is_held_up_by_the_network() -> None:
    source = SourceFacts(now(), waits=waiting(Client_WalSenderWriteData=7, Client_ClientWrite=1, CPU=2))
    (told,) = findings("expensive_decode", source=source)
    assert (told.code, told.title, told.is_cause) == (
        "capture_network", "The network from the source to the engine is slow", True,
    )  # fmt: skip
    assert told.component_id == "k3j2h1g4:capture"
    assert (told.evidence[0].statistic, told.evidence[0].subject) == ("EVENT: SOURCE", "CAPTURE")
    assert figures(told)["WALSENDER SENDING"] == (80.0, "PERCENT", 50.0)
    assert figures(told)["WALSENDER ON A PROCESSOR"] == (20.0, "PERCENT", 50.0)
    assert "beside the source" in told.cures[0].text
    source.waits = waiting(Client_WalSenderWriteData=4, CPU=6)
    for facts in (source, SourceFacts(now()), None):
        assert [finding.code for finding in findings("expensive_decode", source=facts)] == ["capture_decode"]


def test_of_a_walsender_that_ships_wal_nobody_can_tell_that_the_network_is_quick() -> None:
    """It waits for room on the network in the same place as for more WAL."""
    source = SourceFacts(now(), waits=waiting(Activity_WalSenderMain=7, IO_WALRead=2, CPU=1))
    (told,) = findings("expensive_decode", source=source, kind=CaptureKind.WAL)
    assert (told.code, "network" in told.explanation, "network" in told.cures[0].text) == (
        "capture_shipment", False, True,
    )  # fmt: skip
    assert "WALSENDER SENDING" not in figures(told)
    assert figures(told)["WALSENDER READING WAL"] == (20.0, "PERCENT", 50.0)


COMPRESSED = {
    "propagation_compression": Parameter("lz4", "lz4", False, None),
    "propagation_window_mb": Parameter(4, 64, False, 4096),
}  # fmt: skip


def through_window(sent: float, blocked: float) -> list[Sample]:
    """A window of 4 MiB and a round trip of 0.2 s. `blocked`: percent of the time in which a write would block."""
    rates = {"bytes_sent": sent, "link_network_ns": blocked * 1e7}
    gauges = {"window_bytes": 4.0 * MIB, "window_used_bytes": 4.0 * MIB, "round_trip_us": 200_000.0}
    return changed("network_limit", SENDER, {"network": 97.0, "busy": 3.0}, rates, gauges)


def test_a_window_is_too_small_where_all_of_it_is_on_the_way_and_the_network_would_take_more() -> None:
    told, *_ = findings("network_limit", samples=through_window(20e6, 5.0), **COMPRESSED)
    assert (told.code, told.title, told.is_cause) == (
        "network_window", "The window is too small for this network", True,
    )  # fmt: skip
    assert told.component_id == "k3j2h1g4:sender:destination"
    shown = figures(told)
    assert (shown["ROUND TRIP"], shown["WINDOW"]) == ((0.2, "SECONDS", None), (4.0 * MIB, "BYTES", None))
    assert shown["IN FLIGHT"] == (4e6, "BYTES", round(0.8 * 4 * MIB))
    assert proposals(told) == {"propagation_window_mb": (4, 16), "propagation_compression": ("lz4", "zstd")}
    assert told.cures[0].restart_needed
    assert "bandwidth," not in texts(told.cures), "more of it would bring nothing"
    widest = {"propagation_window_mb": Parameter(4096, 64, False, 4096)}
    told, *_ = findings("network_limit", samples=through_window(20e6, 5.0), **(COMPRESSED | widest))
    assert (told.code, "propagation_window_mb" in proposals(told)) == ("network_window", False)


@pytest.mark.parametrize(("sent", "blocked"), [(5e6, 5.0), (20e6, 95.0)])
def test_a_window_is_not_blamed_where_it_is_not_all_on_the_way_or_the_network_takes_no_more(
    sent: float, blocked: float
) -> None:
    """Behind a narrow link, what waits in the kernel's buffers makes the round trip long, and fills a small window."""
    told, *_ = findings("network_limit", samples=through_window(sent, blocked), **COMPRESSED)
    assert (told.code, told.title) == ("network_limit", "The network between the engines is the limit")
    assert ("IN FLIGHT" in figures(told), "propagation_window_mb" in proposals(told)) == (False, False)
    assert "bandwidth," in told.cures[-1].text


def sending(receiver_busy: float = 10.0, **time: float) -> list[Sample]:
    samples = changed("slow_receiver", SENDER, time, {"link_network_ns": 0.0})
    return changed("", RECEIVER, {"busy": receiver_busy, "idle": 100 - receiver_busy}, samples=samples)


@pytest.mark.parametrize(
    ("compression", "proposed"),
    [("zstd", {"propagation_compression": ("zstd", "lz4")}), ("lz4", {"propagation_compression": ("lz4", "none")}),
     ("none", {})],
)  # fmt: skip
def test_a_sender_on_its_processor_is_told_to_compress_less(
    compression: str, proposed: dict[str, tuple[object, object]]
) -> None:
    parameter = Parameter(compression, "lz4", False, None)
    told, *_ = findings("slow_receiver", samples=sending(busy=96.0, idle=4.0), propagation_compression=parameter)
    assert (told.code, told.title, told.is_cause) == ("sender_cpu", "The sender is fully busy", True)
    assert told.component_id == "k3j2h1g4:sender:destination"
    assert (told.evidence[0].subject, figures(told)["EVENT: CPU"]) == ("PROPAGATION SENDER", (96.0, "PERCENT", 15.0))
    assert told.evidence[0].series == f"{SENDER}.time_percent.busy"
    assert proposals(told) == proposed
    assert texts(told.cures[len(proposed) :]).startswith("Give the sender's host more processor time")


def test_a_sender_that_waits_is_not_said_to_be_busy() -> None:
    codes = coded(findings("slow_receiver", samples=sending(network=90.0, busy=10.0)))
    assert ("network_limit" in codes, "sender_cpu" in codes) == (True, False)
    codes = coded(findings("slow_receiver", samples=sending(receiver_busy=98.0, network=90.0, busy=10.0)))
    assert ("receiver_cpu" in codes, "sender_cpu" in codes) == (True, False)


# --- paths that do not work


def retrying(side: ErrorSide) -> Condition:
    return Condition("ENABLED", "ENABLED", "RETRYING", side, "No answer.")


def broken(condition: Condition, samples: list[Sample] | None = None, **facts: Any) -> list[Finding]:
    _, view = analysed(samples or recorded("trigger"), condition)
    return find([view], {view.path.path.path_id: StreamFacts("source", "destination", {}, [], **facts)}, 15.0)


@pytest.mark.parametrize(
    ("condition", "code", "title", "cure"),
    [
        (retrying(ErrorSide.SOURCE), "source_down", "The source delivers no changes", "Bring the source back"),
        (
            retrying(ErrorSide.DESTINATION), "destination_down", "The destination accepts no changes",
            "Bring the destination back",
        ),
        (
            retrying(ErrorSide.LINK), "link_down", "The two engines cannot reach each other",
            "Check the network between the engines",
        ),
        (
            Condition("ENABLED", "ENABLED", "REPLICATING", engine_silent="alpha"), "engine_down",
            "An engine does not answer", "Start thalwegd on its host",
        ),
    ],
)  # fmt: skip
def test_what_does_not_answer_is_told_with_what_brings_it_back(
    condition: Condition, code: str, title: str, cure: str
) -> None:
    (told,) = broken(condition)
    assert (told.code, told.title, told.is_cause, told.severity) == (code, title, True, "critical")
    assert told.component_id is None
    (entry,) = told.evidence
    silent = "The engine alpha does not answer." if condition.engine_silent else "No answer."
    assert (entry.statistic, entry.subject, entry.value) == ("STATUS", "orders", silent)
    assert told.cures[0].text.startswith(cure)
    assert code not in coded(broken(RUNNING))


def test_a_source_out_of_reach_has_the_cure_of_its_own_connection() -> None:
    """Not that of the destination's, which is out of reach, too."""
    here = ConnectionFailure("refused", "It refuses.", "Start the server.", "SELECT 1;")
    there = ConnectionFailure("password", "It knows no such password.", "Set it.")
    both: dict[str, Any] = {"source": SourceFacts(now(), here), "destination": DestinationFacts(now(), there)}
    (told,) = broken(retrying(ErrorSide.SOURCE), **both)
    assert [(item.subject, item.value) for item in told.evidence[1:]] == [("shop", "It refuses.")]
    assert (told.cures[0].text.startswith("Start the server."), told.cures[0].sql) == (True, "SELECT 1;")
    (told,) = broken(retrying(ErrorSide.DESTINATION), **both)
    assert [(item.subject, item.value) for item in told.evidence[1:]] == [("warehouse", "It knows no such password.")]
    assert told.cures[0].text.startswith("Set it.")


def test_a_path_that_only_parks_is_told_with_its_error_queue() -> None:
    (told,) = broken(RUNNING, parking(3, 3, now()))
    assert (told.code, told.title) == ("parking", "Nothing arrives: transactions are parked in the error queue")
    assert [(item.statistic, item.value) for item in told.evidence] == [
        ("STATUS", "Nothing is applied, and 3 transactions are parked."),
    ]
    assert told.cures[0].text.startswith("Open the error queue")
    assert [finding.code for finding in broken(RUNNING, parking(3, 3))] == ["source_idle"]
