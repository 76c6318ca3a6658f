"""The lag as it is worked out: ages of positions, growth, and what stands still while the source writes on."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.test_units import ONLY
from tests.test_units import reading as engine_reading
from thalweg.db.models import DestinationRow, StreamRow
from thalweg.inspection.slots import SlotState, SourceState
from thalweg.kernel.lifecycle import DesiredStatus
from thalweg.kernel.lsn import lsn_of, lsn_text
from thalweg.kernel.time_to_full import seconds_to_full
from thalweg.live.lag import CatchUpTimes, Growth, measured, of_stream, standing
from thalweg.live.marks import Marks
from thalweg.live.rates import sample_of
from thalweg.live.schemas import Backlog, ComponentSample, Lag
from thalweg.live.sources import SourceReading
from thalweg.live.staging import FULL, SHIPMENT
from thalweg.workers.lags import Lags
from thalweg.workers.sources import Seen

AT = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def marks(*points: tuple[float, int]) -> Marks:
    made = Marks()
    for seconds, end in points:
        made.add(after(seconds), end)
    return made


def test_age_of_a_position() -> None:
    known = marks((0, 1000), (10, 2000), (20, 2000), (500, 2000), (510, 3000))
    assert known.age_of(1500, after(510)) == 505
    assert known.age_of(2000, after(510)) == 10, "the source wrote nothing for long: what comes next is new"
    assert known.age_of(2500, after(510)) == 5
    assert known.age_of(999, after(510)) is None, "written before anybody looked"
    assert Marks().age_of(1, AT) is None


def test_an_engine_that_has_heard_of_less_says_nothing() -> None:
    known = marks((0, 1000), (10, 5000), (11, 3000))
    assert known.points[-1][1] == 5000


def test_weeks_of_marks_need_little_room_and_stay_exact() -> None:
    known, moment = Marks(), 0
    while moment < 30 * 86400:
        known.add(after(moment), 1000 + moment)
        moment += 3600
        known.thin(after(moment))
    assert len(known.points) < 200
    for age in (3600, 86400, 15 * 86400):
        assert known.age_of(1000 + moment - age, after(moment)) == pytest.approx(age, abs=1)


def test_growth_needs_time() -> None:
    growth = Growth()
    assert growth.per_second("a", AT, 1000) is None
    assert growth.per_second("a", after(10), 3000) == 200
    assert growth.per_second("a", after(200), 3000) is None, "what was seen minutes ago is not the present"
    assert growth.per_second("a", after(210), 1000) == -200


def source(end: int, *, confirmed: int = 1000, safe: int | None = None, grows: float = 0.0) -> SourceReading:
    slot = SlotState(
        name="thalweg_s", active=False, wal_status="reserved", confirmed_lsn=confirmed, restart_lsn=confirmed,
        retained_bytes=end - confirmed, safe_bytes=safe,
    )  # fmt: skip
    return SourceReading(
        read_at=after(60), state=SourceState(current_lsn=end, slots={slot.name: slot}), growth={slot.name: grows},
        marks=marks((0, 1000), (60, end)),
    )  # fmt: skip


def stopped(reached: dict[str, str] | None = None, *, backlog: bool = False) -> StreamRow:
    destination = DestinationRow(id=ONLY, backlog=backlog)
    return StreamRow(id="s", source_id="db", reached=reached, destinations=[destination])


def test_what_nobody_works_for_grows_as_the_source_writes() -> None:
    known = source(7000)
    lag = standing(stopped(reached={ONLY: lsn_text(1600)}), ONLY, known, after(60))
    assert (lag.bytes, lag.growth_bytes_per_second, lag.seconds) == (5400, 100, None)
    assert lag.age_seconds == pytest.approx(54)
    assert standing(stopped(), ONLY, known, after(60)).bytes == 6000, "as far as its slot"
    ahead = source(7000, confirmed=2000)
    assert standing(stopped(reached={ONLY: lsn_text(1600)}), ONLY, ahead, after(60)).bytes == 5000
    spilled = stopped(reached={ONLY: lsn_text(1600)}, backlog=True)
    assert standing(spilled, ONLY, ahead, after(60)).bytes == 5400, "confirmed, and in the backlog on disk"
    assert standing(stopped(), ONLY, None, AT).bytes is None


def test_a_slot_with_a_limit_says_when_it_is_full() -> None:
    known = source(7000, safe=1000, grows=100)
    assert of_stream([Lag(bytes=3 << 20, seconds=None)], known, known.slot("s")).seconds_to_full == 10
    assert of_stream([Lag(bytes=5, seconds=None)], known, known.slot("s")).seconds_to_full is None, "nothing waits"
    assert of_stream([], source(7000, safe=None, grows=100), known.slot("s")).bytes is None


@pytest.mark.parametrize(
    ("room", "growth", "seconds"),
    [
        (1000.0, 100.0, 10.0), (0.0, 100.0, None), (-1.0, 100.0, None), (1000.0, None, None), (1000.0, -1.0, None),
        (30 * 86400.0, 1.0, 30 * 86400.0), (421 * 86400.0, 1.0, None),
    ],
)  # fmt: skip
def test_what_is_full_or_lasts_for_more_than_30_days_has_no_forecast(
    room: float, growth: float | None, seconds: float | None
) -> None:
    assert seconds_to_full(room, growth) == seconds


def test_a_backlog_has_a_time_to_full_only_while_changes_wait() -> None:
    def shown(waiting: int, state: str) -> float | None:
        lags = Lags(Seen())
        sample = sample_of("s", engine_reading(1), engine_reading(2))
        for second in range(0, 25, 5):
            size = (second + 1) << 20
            backlog = Backlog(state=state, bytes=size, lcrs=1, frames=1, age_seconds=1, limit_bytes=121 << 20)
            destination = sample.destinations[0].model_copy(
                update={"backlog": backlog, "lag": Lag(bytes=waiting, seconds=None, applied="0/1")}
            )
            told = sample.model_copy(update={"destinations": [destination]})
            lag = lags.measured(told, stopped(), after(second)).destinations[0].lag
        return lag.seconds_to_full

    assert shown(8 << 20, "ON DISK") == 100
    assert shown(0, "ON DISK") is None
    assert shown(8 << 20, "FULL") is None


@pytest.mark.parametrize(
    ("active", "confirmed", "stood", "seconds"),
    [
        (True, 6900, 60, None),  # It grows from one leap of the restart position to the next, and its reader keeps up.
        (True, 6900, 900, 10.0),  # The restart position stands: a transaction is open at the source.
        (True, 7000 - (3 << 20), 60, 10.0),  # Its reader lags.
        (False, 6900, 60, 10.0),
    ],
)
def test_the_way_from_one_leap_of_a_slot_to_the_next_is_no_growth(
    active: bool, confirmed: int, stood: float, seconds: float | None
) -> None:
    known = source(7000, safe=1000, grows=100)
    slot = known.state.slots["thalweg_s"].model_copy(update={"active": active, "confirmed_lsn": confirmed})
    reading = known.model_copy(update={"marks": marks((60 - stood, 1000), (60, 7000))})
    assert reading.seconds_to_full(slot) == seconds


def test_growth_does_not_reach_back_before_a_change_of_the_desired_state() -> None:
    lags, row = Lags(Seen()), stopped()
    row.desired_status = row.destinations[0].desired_status = DesiredStatus.ENABLED
    sample = sample_of("s", engine_reading(1), engine_reading(2))

    def grows(second: float, waiting: int, on_disk: int) -> tuple[float | None, float | None]:
        backlog = Backlog(state="ON DISK", bytes=on_disk, lcrs=1, frames=1, age_seconds=1, limit_bytes=1 << 30)
        destination = sample.destinations[0].model_copy(
            update={"backlog": backlog, "lag": Lag(bytes=waiting, seconds=None, applied="0/1")}
        )
        told = sample.model_copy(update={"destinations": [destination]})
        lag = lags.measured(told, row, after(second)).destinations[0].lag
        return lag.growth_bytes_per_second, lag.seconds_to_full

    for second in range(0, 40, 10):
        shrinks = grows(second, (90 - second) << 20, (90 - second) << 20)
    assert shrinks == (-(1 << 20), None)
    row.destinations[0].desired_status = DesiredStatus.DISABLED
    assert grows(40, 50 << 20, 50 << 20) == (None, None)
    for second in range(45, 61, 5):
        growth, full = grows(second, (2 * second - 30) << 20, (2 * second - 30) << 20)
    assert (growth, full) == (2 << 20, (1024 - 90) / 2)
    assert grows(61, 0, 0)[0] == 0, "what has caught up shrinks no more"
    assert grows(71, 0, 0)[0] == 0


def test_the_source_knows_more_of_its_end_than_an_engine_that_is_held_back() -> None:
    told = Lag(bytes=100, seconds=1, applied=lsn_text(1500))
    shown = measured(told, source(7000), after(60))
    assert (shown.bytes, shown.seconds) == (5500, 55)
    assert measured(told, None, AT) == told
    assert measured(Lag(bytes=0, seconds=0, applied=lsn_text(7000)), source(7000), after(600)).age_seconds == 0


def test_an_engine_that_has_heard_of_none_of_it_does_not_tell_when_it_is_done() -> None:
    shown = measured(Lag(bytes=0, seconds=0.0, applied=lsn_text(1500)), source(7000), after(60))
    assert (shown.bytes, shown.seconds) == (5500, None)


def test_one_interval_is_no_forecast() -> None:
    forecasts, lag = CatchUpTimes(), Lag(bytes=1000, seconds=4800.0)
    assert forecasts.seconds("a", AT, lag) is None, "the first transaction of a session"
    assert forecasts.seconds("a", after(1), lag.model_copy(update={"seconds": 20.0})) is None
    assert forecasts.seconds("a", after(2), lag) == 20
    forecasts.seconds("a", after(8), lag)
    assert forecasts.seconds("a", after(9), lag) == 4800, "the quick one is long ago"
    assert forecasts.seconds("a", after(10), lag.model_copy(update={"seconds": None})) is None, "nothing moves"
    assert forecasts.seconds("a", after(11), lag.model_copy(update={"seconds": 0.0})) == 0.001, "it is not done"
    assert forecasts.seconds("a", after(12), Lag(bytes=0, seconds=0.0)) == 0
    assert forecasts.seconds("a", after(13), lag) is None


def test_samples_get_the_sources_end() -> None:
    seen = Seen(readings={"db": source(lsn_of("0/9000"))})
    lags = Lags(seen)
    before = engine_reading(1, applied="0/1000", confirmed="0/0", source_end="0/3000")
    now = engine_reading(2, applied="0/2000", confirmed="0/0", source_end="0/4000")
    sample = sample_of("s", before, now)
    shown = lags.measured(sample, stopped(), after(61))
    assert (shown.lag.bytes, shown.destinations[0].lag.bytes) == (0x7000, 0x7000)
    lags.note_end("db", "0/A000", after(62))
    assert lags.measured(sample, stopped(), after(62)).lag.bytes == 0x8000
    (destination,) = sample.destinations
    nothing_known = destination.model_copy(update={"lag": Lag(bytes=None, seconds=None)})
    unknown = sample.model_copy(update={"destinations": [nothing_known]})
    assert lags.measured(unknown, stopped(), after(62)).lag.bytes == 0xA000 - 1000, "of a stopped one"


@pytest.mark.parametrize(
    ("sizes", "known"),
    [((10, 20, 30, 40, 50), True), ((60, 70, 80, 90, 100), False), ((0, 0, 0, 0, 0), False), ((0, 0, 1, 2, 90), False)],
)
def test_a_backlog_that_is_empty_or_full_has_no_time_until_it_is_full(sizes: tuple[int, ...], known: bool) -> None:
    lags = Lags(Seen(readings={"db": source(64 << 20)}))
    sample = sample_of("s", engine_reading(1), engine_reading(2))
    (destination,) = sample.destinations
    destination = destination.model_copy(update={"lag": Lag(bytes=32 << 20, seconds=None)})
    for seconds, held in enumerate(sizes):
        state = "FULL" if held == 100 else "ON DISK"
        backlog = Backlog(state=state, bytes=held, lcrs=1, frames=1, age_seconds=1, limit_bytes=100)
        told = sample.model_copy(update={"destinations": [destination.model_copy(update={"backlog": backlog})]})
        shown = lags.measured(told, stopped(), after(60 + 10 * seconds))
    assert (shown.destinations[0].lag.seconds_to_full is not None) == known


def test_a_stream_that_is_gone_leaves_no_orphan_in_an_older_reading() -> None:
    seen = Seen(readings={"db": source(7000)})
    lags = Lags(seen)
    lags.forget_slot("db", "thalweg_s")
    lags.forget_slot("never read", "thalweg_s")
    assert seen.readings["db"].state.slots == {}


def staged(used: float, limit: float, state: str = "RECEIVING WAL") -> ComponentSample:
    return ComponentSample(
        id="shipment", type="CAPTURE", name="capture", sub_component=SHIPMENT, server=None, state=state,
        lcrs_per_second=None, transactions_per_second=None, bytes_per_second=None, time_percent=None, counters={},
        gauges={"staged_bytes": used, "staging_limit_bytes": limit}, counter_rates=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("from_percent", "on_disk", "safe", "seconds", "limit"),
    [
        (60, None, None, 15.0, "staging_limit_mb"),
        (60, None, 500, 5.0, "max_slot_wal_keep_size"),
        (60, None, 5000, 15.0, "staging_limit_mb"),
        (60, 92.75, None, 5.0, "queue_spill_limit_mb"),
        (60, 20, None, 15.0, "staging_limit_mb"),
        (0, None, None, None, None),  # a rise in the limit's lower half says nothing
        (75, None, None, None, None),  # it is full
    ],
)
def test_the_time_to_full_is_of_what_is_full_first(
    from_percent: float, on_disk: float | None, safe: int | None, seconds: float | None, limit: str | None
) -> None:
    """The slot, a backlog on disk or, with log mining, the staged WAL."""
    lags = Lags(Seen(readings={"db": source(8 << 20, safe=safe, grows=100)}))
    sample = sample_of("s", engine_reading(1), engine_reading(2))
    for second in range(25):
        used = from_percent + second
        held = (on_disk + second / 4) if on_disk is not None else 0
        backlog = Backlog(state="ON DISK", bytes=held * 400, lcrs=1, frames=1, age_seconds=1, limit_bytes=100 * 400)
        (destination,) = sample.destinations
        destination = destination.model_copy(
            update={"backlog": backlog, "lag": Lag(bytes=4 << 20, seconds=None, applied="0/400000")}
        )
        state = FULL if used >= 99 else "RECEIVING WAL"
        components = [*sample.components, staged(min(used, 99) * 1000, 99_000, state)]
        told = sample.model_copy(update={"destinations": [destination], "components": components})
        shown = lags.measured(told, stopped(), after(60 + second))
    assert (shown.lag.seconds_to_full, shown.lag.reached_limit) == (seconds and pytest.approx(seconds), limit)
    own = shown.destinations[0].lag
    assert own.reached_limit == (limit if limit != "max_slot_wal_keep_size" else "staging_limit_mb")


def test_staged_wal_fills_up_while_no_change_waits() -> None:
    """A transaction is open at the source."""
    lags, sample = Lags(Seen()), sample_of("s", engine_reading(1), engine_reading(2))
    (destination,) = sample.destinations
    idle = destination.model_copy(update={"lag": Lag(bytes=0, seconds=0.0)})
    for second in range(25):
        components = [staged((60 + second) * 1000, 100_000)]
        told = sample.model_copy(update={"destinations": [idle], "components": components})
        lag = lags.measured(told, stopped(), after(second)).lag
    assert (lag.bytes, lag.seconds_to_full, lag.reached_limit) == (0, pytest.approx(16), "staging_limit_mb")
