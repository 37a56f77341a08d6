"""Naming a moment: by seq, event, event id or time; and what is no moment is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest
from turns import owner

import freehold
from freehold import Host, Refused, Run, RunView
from freehold.storage.clock import Clock

BASE_MS = 4_000_000_000_000


class Stepping(Clock):
    """Each look at it is seven milliseconds later than the one before."""

    now = BASE_MS

    def now_ms(self) -> int:
        self.now += 7
        return self.now


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path) as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        clock = Stepping()
        owner(host, run)._store.clock = clock
        for number in range(10):
            run.append("x", number)
        yield run


def after(run: RunView, at: Any) -> list[int]:
    return [event.seq for event in run.history(after=at)]


def test_every_form_of_a_moment_is_understood(run: Run) -> None:
    events = list(run.history())
    event = events[4]
    offset = event.time.astimezone(timezone(timedelta(hours=5, minutes=30)))
    rest = list(range(6, 12))
    for at in (event, 5, "5", "05", event.id, event.id.upper(), event.time, event.time.isoformat(), offset, offset.isoformat()):
        assert after(run, at) == rest, type(at)
        assert [found.seq for found in run.history(after=at, reverse=True)] == rest[::-1]
    assert after(run, event.time.isoformat().replace("+00:00", "Z")) == rest


def test_zero_is_before_everything_and_what_is_beyond_the_last_is_the_end(run: Run) -> None:
    everything = list(range(1, 12))
    assert after(run, None) == after(run, 0) == after(run, "0") == everything
    for at in (11, 12, 10**9, 2**62, 2**63, 2**70, "999999999999999999"):
        assert after(run, at) == []
        assert list(run.history(after=at, reverse=True)) == []


def test_a_time_means_the_last_event_by_then(run: Run) -> None:
    events = list(run.history())[1:]
    for event in events:
        assert after(run, event.time - timedelta(milliseconds=1))[0] == event.seq
        assert after(run, event.time) == [later.seq for later in events if later.seq > event.seq]
        assert after(run, event.time + timedelta(microseconds=999)) == [later.seq for later in events if later.seq > event.seq]
    assert len(after(run, datetime(1970, 1, 1, tzinfo=UTC))) == 11
    assert len(after(run, datetime(1, 1, 2, tzinfo=UTC))) == 11
    assert after(run, datetime.max.replace(tzinfo=UTC)) == []


class Nowhere(tzinfo):
    """A zone that does not know its offset."""

    def utcoffset(self, _: datetime | None) -> None:
        return None

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, _: datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    "at",
    [
        -1,
        True,
        False,
        1.0,
        b"5",
        "",
        "-1",
        " 5",
        "five",
        "1" * 19,
        "0x5",
        "\u0665",
        "00000000-0000-7000-8000-000000000000",
        "00000000-0000-7000-8000-00000000000",
        "f" * 64,
        datetime(2030, 1, 1),  # noqa: DTZ001 - a naive one is what is tried
        datetime(2030, 1, 1, tzinfo=Nowhere()),
        "2030-01-01T00:00:00",
        "2030-01-01",
        date(2030, 1, 1),
        [5],
        object(),
    ],
    ids=lambda at: type(at).__name__,
)
def test_what_is_no_moment_is_refused(run: Run, at: Any) -> None:
    with pytest.raises(Refused) as caught:
        run.history(after=at)
    assert (caught.value.code, caught.value.executed) == ("bad_position", "no")
    assert run.info.epoch == 1


@pytest.mark.parametrize("hours", [-14, 14])
def test_a_time_at_the_edge_of_the_calendar_is_understood_or_refused(run: Run, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    latest, earliest = datetime.max.replace(tzinfo=zone), datetime.min.replace(tzinfo=zone)
    # The one that has no name in UTC is refused; the other one is as good as any.
    beyond, (inside, count) = (latest, (earliest, 11)) if hours < 0 else (earliest, (latest, 0))
    with pytest.raises(Refused) as caught:
        run.history(after=beyond)
    assert caught.value.code == "bad_position"
    assert len(after(run, inside)) == count


def test_an_event_of_another_run_is_no_moment_of_this_one(host: Host, run: Run) -> None:
    with host.create("b") as other:
        foreign = other.append("x")
    for at in (foreign, foreign.id):
        with pytest.raises(Refused) as caught:
            run.history(after=at)
        assert caught.value.code == "bad_position"
