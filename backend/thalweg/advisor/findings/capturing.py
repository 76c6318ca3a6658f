"""The source's side: decoding, or shipping WAL, the way from the source, and the network between two engines."""

from collections.abc import Iterator

from thalweg.advisor.finding import Cure, Evidence, Finding
from thalweg.advisor.findings.clues import SUPERUSER, Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.findings.mining import IMAGES_MOST, image_percent
from thalweg.advisor.occupancy import NANOSECONDS_PER_PERCENT, SOURCE
from thalweg.advisor.stages import Stage
from thalweg.inspection.sessions import CPU
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.live.schemas import ComponentType

SENDING = ("Client:WalSenderWriteData", "Client:ClientWrite")
"""Waits of a walsender that decodes. One that ships WAL waits for room on the network as it waits for more WAL, in
Activity:WalSenderMain: of it nobody can tell."""
READING = ("IO:WALRead", "IO:WalRead")
WINDOW_FULL = 0.8
WRITING_BLOCKED_PERCENT = 50.0
"""A network that does not take what is in the window, so that writes block, would not take more of a larger one."""
COMPRESSIONS = {"none": "lz4", "lz4": "zstd"}


def capturing(clues: Clues) -> Iterator[Finding]:
    stage = clues.limiting
    if stage is None or stage.mean is None:
        return
    kind = stage.component.component_type
    if kind is ComponentType.CAPTURE:
        found = _source(clues, stage) if stage.mean.top[0] == SOURCE else _capture_cpu(clues, stage)
        # Where most of the WAL is images, they are the cause of what there is to ship and to mine.
        yield found.model_copy(update={"is_cause": found.is_cause and (image_percent(clues) or 0.0) <= IMAGES_MOST})
    elif kind is ComponentType.PROPAGATION_SENDER:
        yield _network(clues, stage) if stage.mean.top[0] == "NETWORK" else _propagation_cpu(clues, stage, "sender")
    elif kind is ComponentType.PROPAGATION_RECEIVER:
        yield _propagation_cpu(clues, stage, "receiver")


def _source(clues: Clues, stage: Stage) -> Finding:
    """Capture waits while the source is ahead: the way is slow, or the source decodes, or ships its WAL, slowly."""
    facts, load = clues.facts.source, stage.loads[0]
    evidence = [
        clues.share(stage, SOURCE, "network"),
        clues.rate(load, "wal_bytes", "WAL RATE", "BYTES PER SECOND"),
        clues.rate(load, "bytes", "BANDWIDTH", "BYTES PER SECOND"),
    ]
    share = stage.mean.events[SOURCE] if stage.mean else 0.0
    sending = facts.waits.share(*SENDING) if facts else 0.0
    if facts is not None:
        mined = _is_mined(clues)
        waits = _walsender("reading WAL", facts.waits.share(*READING)) if mined else _walsender("sending", sending)
        evidence += [waits, _walsender("on a processor", facts.waits.share(CPU))]
    if facts is not None and facts.waits.sessions and sending > 50:
        return clues.finding(
            FindingCode.CAPTURE_NETWORK,
            f"In {sending:.0f} % of the looks, the source's walsender waits until it may send more.", evidence,
            [action("Run the capturing engine beside the source and propagate from there, compressed, to the engine "
                    "that applies.")],
            stage=stage, share=share,
        )  # fmt: skip
    if _is_mined(clues):
        return clues.finding(
            FindingCode.CAPTURE_SHIPMENT,
            "Log mining waits for WAL that the source has written and that has not arrived yet.",
            evidence,
            [action("Look for what slows the source's disk, from which its walsender reads, the network to the engine, "
                    "and the disk of the engine's host, on which WAL is staged; raise the stream's staging_limit_mb "
                    "where it is reached.")],
            stage=stage, share=share,
        )  # fmt: skip
    return clues.finding(
        FindingCode.CAPTURE_DECODE,
        "Capture waits for the source: its walsender reads all WAL of the server, and decodes what the stream wants.",
        evidence, _decode_cures(clues, evidence), stage=stage, share=share,
    )  # fmt: skip


def _is_mined(clues: Clues) -> bool:
    return clues.facts.capture_kind is CaptureKind.WAL


def _walsender(what: str, share: float) -> Evidence:
    return fact(f"WALSENDER {what.upper()}", "source", round(share, 1), "PERCENT", 50.0)


def _decode_cures(clues: Clues, evidence: list[Evidence]) -> list[Cure]:
    facts, cures = clues.facts.source, []
    slot = facts.slot if facts is not None else None
    if facts is not None and slot is not None:
        spilled = slot.get("spill_bytes")
        memory = facts.settings.get("logical_decoding_work_mem", "")
        if isinstance(spilled, int) and spilled > 0:
            evidence.append(fact("pg_stat_replication_slots.spill_bytes", "source", float(spilled), "BYTES"))
            evidence.append(fact("logical_decoding_work_mem", "source", memory))
            cures.append(
                clues.at_source(
                    "Let the source keep larger transactions in memory while it decodes.",
                    "ALTER SYSTEM SET logical_decoding_work_mem = '256MB'; SELECT pg_reload_conf();",
                    SUPERUSER,
                )
            )
        evidence.append(fact("OUTPUT PLUGIN", "source", str(slot.get("plugin"))))
        if slot.get("plugin") == "pgoutput":
            cures.append(
                action(
                    "Install the output plugin thalweg_output at the source's server and create the stream again: it "
                    "saves the source a third of its time."
                )
            )
    cures.append(
        action(
            "Move other load off the source's processors; or, from PostgreSQL 16 on, read from a physical standby: "
            "register the servers as one database with read_from = standby, and create the stream again from it."
        )
    )
    return cures


def _capture_cpu(clues: Clues, stage: Stage) -> Finding:
    load, conditions = stage.loads[0], clues.facts.conditions
    evidence = [clues.share(stage, "CPU", "busy"), clues.rate(load, "lcrs", "CAPTURE RATE", "MESSAGES PER SECOND")]
    what = "One thread " + ("mines the source's WAL" if _is_mined(clues) else "turns the source's messages into LCRs")
    text, cures = what + ".", []
    if conditions:
        text = what + ", and evaluates the conditions of the stream's rules."
        evidence.append(fact("CONDITIONS OF RULES", "stream", float(conditions), "CONDITIONS"))
        cures.append(
            action(
                "Make the rules' conditions cheap: compare columns with constants, give a table its own rules instead "
                "of long lists for all tables, and leave out rules that decide nothing."
            )
        )
    cures.append(action("Split the stream's tables over two streams, each with a capture of its own."))
    return clues.finding(FindingCode.CAPTURE_CPU, text, evidence, cures, stage=stage, share=50.0)


def _network(clues: Clues, stage: Stage) -> Finding:
    load = stage.loads[0]
    gauges, sent = load.last.gauges, load.rates.get("bytes_sent", 0.0)
    window, trip = gauges.get("window_bytes", 0.0), gauges.get("round_trip_us", 0.0) / 1e6
    in_flight = sent * trip
    share = stage.mean.events["NETWORK"] if stage.mean else 0.0
    evidence = [
        clues.share(stage, "NETWORK", "network"),
        clues.rate(load, "bytes_sent", "BANDWIDTH", "BYTES PER SECOND"),
        fact("ROUND TRIP", "sender", round(trip, 4), "SECONDS"),
        fact("WINDOW", "sender", window, "BYTES"),
        fact("propagation_compression", "stream", str(clues.value("propagation_compression"))),
    ]
    cures: list[Cure] = []
    better = COMPRESSIONS.get(str(clues.value("propagation_compression")))
    blocked = load.rates.get("link_network_ns", 0.0) / NANOSECONDS_PER_PERCENT
    by_window = window > 0 and in_flight >= WINDOW_FULL * window and blocked <= WRITING_BLOCKED_PERCENT
    megabytes = clues.number("propagation_window_mb")
    if by_window and 0 < megabytes < 4096:
        cures.append(
            clues.parameters(
                "Allow more data in flight: bandwidth times round trip exceeds the window.",
                propagation_window_mb=min(4096, 4 * megabytes),
            )
        )
    if better is not None:
        text = "Compress the data on the network." if better == "lz4" else "Compress the data more."
        cures.append(clues.parameters(text, propagation_compression=better))
    if by_window:
        full = round(WINDOW_FULL * window)
        evidence.append(fact("IN FLIGHT", "sender", float(round(in_flight)), "BYTES", float(full)))
        cures.append(action("Leave out tables and columns that are not needed."))
    else:
        text = "Give the two engines more bandwidth, or leave out tables and columns that are not needed."
        cures.append(action(text))
    traffic = f"{sent / 1e6:,.2f} MB a second go over a round trip of {trip * 1000:,.1f} ms."
    return clues.finding(
        FindingCode.NETWORK_WINDOW if by_window else FindingCode.NETWORK_LIMIT,
        f"The sender waits for the network {share:.0f} % of the time: {traffic}", evidence, cures, stage=stage,
        share=share,
    )  # fmt: skip


def _propagation_cpu(clues: Clues, stage: Stage, who: str) -> Finding:
    load, cures = stage.loads[0], []
    if clues.value("propagation_compression") == "zstd":
        cures.append(clues.parameters("Compress with less effort.", propagation_compression="lz4"))
    elif clues.value("propagation_compression") == "lz4" and who == "sender":
        cures.append(clues.parameters("Do not compress, where the network has room.", propagation_compression="none"))
    cures.append(action(f"Give the {who}'s host more processor time: check what else runs there."))
    cures.append(action("Split the stream's tables over two streams, each with a propagation of its own."))
    return clues.finding(
        FindingCode.SENDER_CPU if who == "sender" else FindingCode.RECEIVER_CPU,
        f"The thread of the propagation's {who} is busy.",
        [clues.share(stage, "CPU", "busy"), clues.rate(load, "lcrs", "MESSAGE RATE", "MESSAGES PER SECOND")],
        cures, stage=stage, share=50.0,
    )  # fmt: skip
