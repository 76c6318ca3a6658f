"""Apply's reader and coordinator: spill, and many tiny transactions."""

from collections.abc import Iterator

from thalweg.advisor.finding import Cure, Finding, FindingSeverity
from thalweg.advisor.findings.clues import Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.load import rate_of
from thalweg.advisor.stages import Stage

TINY_LCRS = 5.0
SPILL_THRESHOLD_MAX = 1_000_000
MEMORY_MAX_MB = 4096


def assembling(clues: Clues) -> Iterator[Finding]:
    for reader in clues.view.stages:
        if reader.sub_component == "APPLY READER":
            yield from _spill(clues, reader)
    stage = clues.limiting
    if stage is None:
        return
    if stage.sub_component == "APPLY COORDINATOR" and stage.mean is not None and stage.mean.top[0] == "CPU":
        yield _coordinator(clues, stage)
    if stage.sub_component == "APPLY READER" and stage.mean is not None:
        yield from _reader(clues, stage)


def _spill(clues: Clues, stage: Stage) -> Iterator[Finding]:
    """A cause where the reader's disk time limits; else advice: spilled transactions cost disk twice."""
    load = stage.loads[0]
    rate = load.rates.get("spilled_lcrs", 0.0)
    disk = stage.mean.events.get("DISK", 0.0) if stage.mean else 0.0
    limits = stage is clues.limiting and disk > clues.event_threshold
    if rate <= 0 and not limits:
        return
    cures: list[Cure] = []
    threshold, memory = clues.number("txn_lcr_spill_threshold"), clues.number("memory_budget_mb")
    if 0 < threshold < SPILL_THRESHOLD_MAX:
        cures.append(
            clues.parameters(
                "Let larger transactions stay in memory.",
                txn_lcr_spill_threshold=min(SPILL_THRESHOLD_MAX, 10 * threshold),
            )
        )
    if 0 < memory < MEMORY_MAX_MB:
        cures.append(
            clues.parameters(
                "Give apply more memory: it spills when that is used up.",
                memory_budget_mb=min(MEMORY_MAX_MB, 2 * memory),
            )
        )
    yield clues.finding(
        FindingCode.APPLY_SPILL,
        f"The reader has moved {rate:,.0f} LCRs a second to disk: transactions are larger than "
        f"txn_lcr_spill_threshold ({threshold:,} LCRs), older than txn_age_spill_threshold, or memory is short.",
        [
            clues.rate(load, "spilled_lcrs", "SPILL RATE", "MESSAGES PER SECOND"),
            clues.share(stage, "DISK", "disk"),
            fact("txn_lcr_spill_threshold", "stream", float(threshold), "LCRS"),
        ],
        cures or [action("Use a faster disk for the engine's state directory.")],
        severity=FindingSeverity.WARNING if limits else FindingSeverity.ADVICE, is_cause=limits, stage=stage,
        share=disk if limits else None,
    )  # fmt: skip


def _reader(clues: Clues, stage: Stage) -> Iterator[Finding]:
    assert stage.mean is not None  # noqa: S101
    event, share = stage.mean.top
    if event != "CPU":
        return
    load = stage.loads[0]
    lcrs, transactions = load.rates.get("lcrs"), load.rates.get("transactions", 0.0)
    if lcrs is not None and transactions and lcrs / transactions <= TINY_LCRS:
        yield _tiny(clues, stage, lcrs / transactions, "The reader assembles each transaction", [])
        return
    yield clues.finding(
        FindingCode.APPLY_READER_CPU,
        "It assembles transactions and computes which keys each one touches: one thread's processor is the limit.",
        [
            clues.share(stage, "CPU", "busy"),
            clues.rate(load, "lcrs", "DEQUEUE RATE", "MESSAGES PER SECOND"),
        ],
        [action("Split the stream's tables over two streams, each with a reader of its own.")], stage=stage,
        share=share / 2,
    )  # fmt: skip


def _coordinator(clues: Clues, stage: Stage) -> Finding:
    load = stage.loads[0]
    servers = [load for other in clues.view.stages if other.sub_component == "APPLY SERVER" for load in other.loads]
    lcrs, transactions = rate_of(servers, "lcrs"), load.rates.get("transactions", 0.0)
    per = lcrs / transactions if lcrs is not None and transactions else None
    cures: list[Cure] = []
    size = clues.facts.parameters.get("group_size")
    if size is not None and isinstance(size.default, int) and clues.number("group_size") < size.default:
        cures.append(clues.parameters("Let it hand over more transactions at a time.", group_size=size.default))
    appliers = clues.number("parallelism")
    if appliers > 2:
        cures.append(clues.parameters("Fewer appliers mean fewer groups to hand over.", parallelism=appliers // 2))
    return _tiny(clues, stage, per, "The coordinator works out the dependencies of each transaction", cures)


def _tiny(clues: Clues, stage: Stage, per: float | None, work: str, cures: list[Cure]) -> Finding:
    """The finding about a stage that works for each transaction, whatever is in it. `per`: LCRs of a transaction."""
    load = stage.loads[0]
    transactions = load.rates.get("transactions", 0.0)
    tiny = per is not None and per <= TINY_LCRS
    split = "Split the stream's tables over two streams"
    return clues.finding(
        FindingCode.APPLY_TINY_TRANSACTIONS if tiny else FindingCode.APPLY_COORDINATOR_CPU,
        f"{work} and hands it over: {transactions:,.0f} a second"
        + (f", of {per:.1f} LCRs each." if per is not None else "."),
        [
            clues.share(stage, "CPU", "busy"),
            clues.rate(load, "transactions", "TRANSACTION RATE", "TRANSACTIONS PER SECOND"),
            fact("MESSAGES PER TRANSACTION", "apply", None if per is None else round(per, 2), "NUMBER", TINY_LCRS),
        ],
        [
            *cures,
            action("Give the engine's host more processor time: check what else runs there."),
            action(f"{split}, or commit more changes at a time at the source." if tiny else f"{split}."),
        ],
        stage=stage, share=50.0,
    )  # fmt: skip
