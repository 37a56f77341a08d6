"""The queue in which everybody waits for a turn: bounded, in order, and nothing is lost between put and close."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from os import sched_yield
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from troupe import PATIENCE_S, run_together, until

from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope, Lane
from freehold.actors.mailbox import Mailbox
from freehold.actors.refusal import stopping
from freehold.schema.errors import MailboxFull, Refused, Unavailable
from freehold.storage import forks

BIG = 1 << 40
OVERHEAD = Envelope(0).size


def letter(message: object, lane: Lane = Lane.USER, *, size: int = 0, alone: bool = False) -> Envelope:
    return Envelope(message, lane=lane, size=size, alone=alone)


def put(mailbox: Mailbox, *messages: object, lane: Lane = Lane.USER) -> None:
    for message in messages:
        mailbox.put(letter(message, lane))


def taken(mailbox: Mailbox, messages: int = 100, size: int = BIG) -> list[object]:
    return [envelope.message for envelope in mailbox.take(messages, size)]


def sleeping(mailbox: Mailbox) -> None:
    """Wait until the consumer has looked and found nothing."""
    until(lambda: mailbox._asleep)
    with mailbox._lock:
        pass


def ending() -> Unavailable:
    return Unavailable("ending", code="stopping")


def closing() -> Unavailable:
    return Unavailable("closed", code="still_stopping")


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(messages_max=4, bytes_max=10_000)


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# Order


def test_first_come_is_first_served_inside_a_lane(mailbox: Mailbox) -> None:
    put(mailbox, 1, 2, 3)

    assert taken(mailbox, 2) == [1, 2]
    assert taken(mailbox) == [3]
    assert taken(mailbox) == []


def test_system_comes_before_span_and_span_before_all_else(mailbox: Mailbox) -> None:
    put(mailbox, "user", lane=Lane.USER)
    put(mailbox, "span", lane=Lane.SPAN)
    put(mailbox, "system 1", "system 2", lane=Lane.SYSTEM)

    assert [taken(mailbox) for _ in range(4)] == [["system 1"], ["system 2"], ["span"], ["user"]]


def test_a_message_that_stands_alone_cuts_a_batch() -> None:
    mailbox = Mailbox()
    for message, alone in ((1, False), (2, True), (3, True), (4, False), (5, False)):
        mailbox.put(letter(message, alone=alone))

    assert [taken(mailbox) for _ in range(4)] == [[1], [2], [3], [4, 5]]


def test_a_batch_ends_with_its_bytes_and_one_message_always_goes() -> None:
    mailbox = Mailbox()
    for size in (500, 10, 10):
        mailbox.put(letter(size, size=size))

    assert taken(mailbox, size=1) == [500]
    assert taken(mailbox, size=2 * OVERHEAD + 20) == [10, 10]
    mailbox.put(letter("left"))
    assert taken(mailbox, size=0) == []
    assert len(mailbox) == 1


# Bounds


def test_a_full_mailbox_refuses_and_nothing_is_left_behind(mailbox: Mailbox) -> None:
    put(mailbox, 1, 2, 3, 4)
    with pytest.raises(MailboxFull) as raised:
        put(mailbox, 5)

    assert raised.value.details == {"messages_max": 4, "bytes_max": 10_000}
    assert raised.value.retryable
    assert (len(mailbox), mailbox.high_water, mailbox.refused) == (4, 4, 1)
    assert taken(mailbox) == [1, 2, 3, 4]
    assert mailbox._bytes == 0


def test_bytes_are_bounded_too_and_given_back_by_taking(mailbox: Mailbox) -> None:
    mailbox.put(letter("large", size=10_000 - 2 * OVERHEAD))
    mailbox.put(letter("fills it"))
    with pytest.raises(MailboxFull):
        mailbox.put(letter("one byte too many"))
    assert len(mailbox) == 2

    assert taken(mailbox, 1) == ["large"]
    mailbox.put(letter("fits now", size=9_000))
    assert taken(mailbox) == ["fills it", "fits now"]


@pytest.mark.parametrize("lane", [Lane.SYSTEM, Lane.SPAN])
def test_system_and_span_messages_are_taken_however_full_it_is(mailbox: Mailbox, lane: Lane) -> None:
    put(mailbox, 1, 2, 3, 4)
    put(mailbox, *range(20), lane=lane)

    assert len(mailbox) == 24


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(Lane), st.integers(0, 3_000), st.booleans()),
        st.tuples(st.sampled_from(["take", "take_late", "put_back"]), st.integers(0, 3), st.integers(0, 4_000), st.booleans()),
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_bytes_are_those_of_the_user_lane_whatever_is_done(operations: list[tuple[str, int, int, bool]]) -> None:
    mailbox = Mailbox(messages_max=4, bytes_max=5_000)
    for kind, number, size, flag in operations:
        match kind:
            case "put":
                try:
                    mailbox.put(letter("x", Lane(number), size=size, alone=flag))
                except MailboxFull:
                    assert number is Lane.USER
            case "take_late":
                assert all(envelope.lane is Lane.USER and not envelope.alone for envelope in mailbox.take_late(number, size)[:1])
            case _:
                batch = mailbox.take(number, size)
                if kind == "put_back":
                    before = len(mailbox)
                    mailbox.put_back(batch)
                    assert len(mailbox) == before + len(batch)
        user = mailbox._lanes[Lane.USER]
        assert mailbox._bytes == sum(envelope.size for envelope in user)


# Taking late, putting back, narrowing


def test_a_batch_about_to_end_takes_more(mailbox: Mailbox) -> None:
    put(mailbox, 1, 2, 3)

    assert [envelope.message for envelope in mailbox.take_late(2, BIG)] == [1, 2]
    assert taken(mailbox) == [3]


@pytest.mark.parametrize("next_one", [letter("n", Lane.SYSTEM), letter("n", Lane.SPAN)])
def test_nothing_is_taken_late_past_another_lane(mailbox: Mailbox, next_one: Envelope) -> None:
    put(mailbox, 1)
    mailbox.put(next_one)

    assert mailbox.take_late(2, BIG) == []
    assert len(mailbox) == 2


def test_what_stands_alone_is_not_taken_late(mailbox: Mailbox) -> None:
    mailbox.put(letter("alone", alone=True))
    assert mailbox.take_late(2, BIG) == []

    assert taken(mailbox) == ["alone"]


def test_nothing_is_taken_late_while_only_a_span_is_served(mailbox: Mailbox) -> None:
    put(mailbox, 1)
    mailbox.narrow(to_span=True)

    assert mailbox.take_late(2, BIG) == []


@pytest.mark.usefixtures("quick_switches")
def test_a_system_message_that_comes_meanwhile_is_never_taken_late() -> None:
    mailbox = Mailbox()
    late: list[Envelope] = []

    def consume() -> None:
        rest = 4_000
        while rest:
            put(mailbox, "user")
            late.extend(mailbox.take_late(1, BIG))
            while envelopes := mailbox.take(10, BIG):
                rest -= sum(envelope.lane is Lane.SYSTEM for envelope in envelopes)

    run_together(consume, lambda: put(mailbox, *range(4_000), lane=Lane.SYSTEM))

    assert {envelope.lane for envelope in late} <= {Lane.USER}


def test_what_was_put_back_comes_first_and_in_order(mailbox: Mailbox) -> None:
    put(mailbox, 1, 2, 3)
    batch = mailbox.take(3, BIG)
    put(mailbox, 4)
    mailbox.put_back(batch[1:])

    assert taken(mailbox) == [2, 3, 4]


def test_a_narrowed_mailbox_serves_system_and_span_alone(mailbox: Mailbox) -> None:
    mailbox.narrow(to_span=True)
    put(mailbox, "user")
    assert taken(mailbox) == []
    assert not mailbox.wait(monotonic())
    put(mailbox, "span", lane=Lane.SPAN)
    put(mailbox, "system", lane=Lane.SYSTEM)
    assert [taken(mailbox), taken(mailbox), taken(mailbox)] == [["system"], ["span"], []]

    mailbox.narrow(to_span=False)
    assert mailbox.wait(None)
    assert taken(mailbox) == ["user"]


# Waiting


def test_waiting_ends_with_the_clock_and_at_once_when_it_is_late_already(mailbox: Mailbox) -> None:
    assert not mailbox.wait(monotonic() + 0.01)
    assert not mailbox.wait(monotonic() - 10)


def test_what_is_there_ends_the_wait_whatever_the_clock_says(mailbox: Mailbox) -> None:
    put(mailbox, 1)

    assert mailbox.wait(monotonic() - 10)


@pytest.mark.parametrize("end", [None, math.inf, 1e300])
@pytest.mark.parametrize("lane", Lane)
def test_a_message_wakes_its_consumer(mailbox: Mailbox, end: float | None, lane: Lane) -> None:
    def send() -> None:
        sleeping(mailbox)
        put(mailbox, 1, lane=lane)

    woken, _ = run_together(lambda: mailbox.wait(end), send)

    assert woken is True
    assert taken(mailbox) == [1]


def test_a_narrowed_consumer_is_woken_by_a_span_and_not_by_others(mailbox: Mailbox) -> None:
    mailbox.narrow(to_span=True)

    def send() -> None:
        sleeping(mailbox)
        put(mailbox, "user")
        assert mailbox._wake.empty()
        assert mailbox._asleep  # whoever has to wait does not wake it in vain
        put(mailbox, "span", lane=Lane.SPAN)

    assert run_together(lambda: mailbox.wait(monotonic() + PATIENCE_S / 4), send) == [True, None]
    assert taken(mailbox) == ["span"]


def test_who_is_awake_is_not_called_so_that_calls_do_not_pile_up(mailbox: Mailbox) -> None:
    put(mailbox, 1, 2)
    mailbox.post("left")
    mailbox.close(closing)

    assert mailbox._wake.empty()


@pytest.mark.usefixtures("quick_switches")
def test_no_message_is_missed_where_the_clock_and_a_sender_come_together() -> None:
    mailbox = Mailbox()
    count = 3_000
    got: list[object] = []

    def consume() -> None:
        while len(got) < count:
            if mailbox.wait(monotonic() + 1e-5):
                batch = taken(mailbox)
                assert batch  # a wake is never for nothing
                got.extend(batch)

    run_together(consume, lambda: put(mailbox, *range(count)))

    assert got == list(range(count))


# Sealing and closing


def test_a_sealed_mailbox_refuses_what_comes_and_keeps_what_waits(mailbox: Mailbox) -> None:
    put(mailbox, 1)
    mailbox.seal(ending)
    mailbox.seal(closing)
    with pytest.raises(Unavailable, match="ending"):
        put(mailbox, 2)
    put(mailbox, "system", lane=Lane.SYSTEM)

    assert mailbox.refused == 1
    assert [taken(mailbox), taken(mailbox), taken(mailbox)] == [["system"], [1], []]


@pytest.mark.parametrize("lane", Lane)
def test_a_closed_mailbox_refuses_every_lane(mailbox: Mailbox, lane: Lane) -> None:
    mailbox.seal(ending)
    mailbox.close(closing)
    with pytest.raises(Unavailable, match="closed"):
        put(mailbox, 1, lane=lane)

    assert len(mailbox) == 0


def test_closing_returns_what_waits_once(mailbox: Mailbox) -> None:
    put(mailbox, "user")
    put(mailbox, "system", lane=Lane.SYSTEM)

    assert [envelope.message for envelope in mailbox.close(closing)] == ["system", "user"]
    assert mailbox.close(closing) == []
    assert (len(mailbox), mailbox._bytes) == (0, 0)


def test_a_closed_mailbox_ends_every_wait(mailbox: Mailbox) -> None:
    mailbox.close(closing)

    assert mailbox.wait(monotonic())


def test_closing_wakes_the_consumer_for_the_last_time(mailbox: Mailbox) -> None:
    def close() -> None:
        sleeping(mailbox)
        mailbox.close(closing)

    assert run_together(lambda: mailbox.wait(monotonic() + PATIENCE_S / 4), close) == [True, None]
    assert mailbox.wait(None)
    assert taken(mailbox) == []


class Lock:
    """Counts how often it was taken, and knows whether it is held."""

    taken = held = 0

    def __enter__(self) -> None:
        self.taken += 1
        self.held += 1

    def __exit__(self, *_: object) -> None:
        self.held -= 1


class Guarded(deque[Envelope]):
    """A lane that is neither looked at nor changed without the lock."""

    def __init__(self, lock: Lock) -> None:
        super().__init__()
        self.lock = lock

    def __len__(self) -> int:
        assert self.lock.held
        return super().__len__()

    def append(self, envelope: Envelope, /) -> None:
        assert self.lock.held
        super().append(envelope)


def test_each_step_looks_and_acts_in_one_hold_of_the_lock(mailbox: Mailbox) -> None:
    mailbox._lock = lock = Lock()  # type: ignore[assignment]
    mailbox._lanes = tuple(Guarded(lock) for _ in Lane)
    batch: list[Envelope] = []
    steps: list[Callable[[], object]] = [
        lambda: put(mailbox, 1),
        lambda: mailbox.wait(monotonic()),
        lambda: batch.extend(mailbox.take(1, BIG)),
        lambda: mailbox.put_back(batch),
        lambda: mailbox.take_late(1, BIG),
        lambda: mailbox.close(closing),
    ]
    for number, step in enumerate(steps, 1):
        step()
        assert lock.taken == number

    assert [envelope.message for envelope in batch] == [1]


@pytest.mark.usefixtures("quick_switches")
def test_no_message_is_lost_between_put_and_close() -> None:
    for _ in range(300):
        mailbox = Mailbox(messages_max=100_000)
        accepted: list[int] = []

        def send(first: int, mailbox: Mailbox = mailbox, accepted: list[int] = accepted) -> None:
            for number in range(first, first + 40):
                try:
                    mailbox.put(letter(number))
                except Unavailable:
                    return
                accepted.append(number)

        threads = [Thread(target=send, args=(first,)) for first in (0, 100, 200)]
        for thread in threads:
            thread.start()
        seen = [envelope.message for envelope in mailbox.take(10, BIG)]
        seen += [envelope.message for envelope in mailbox.close(closing)]
        for thread in threads:
            thread.join()

        assert sorted(seen) == sorted(accepted)
        assert len(mailbox) == 0


# Finalizers and forks


def test_a_finalizer_may_leave_something_while_the_lock_is_held(mailbox: Mailbox) -> None:
    class Forgotten:
        def __del__(self) -> None:
            mailbox.post("found")

    forgotten = [Forgotten()]

    def refusal() -> Unavailable:
        forgotten.clear()  # the finalizer runs here, in a thread that holds the mailbox's lock
        return ending()

    mailbox.seal(refusal)
    with pytest.raises(Unavailable):
        put(mailbox, 1)

    assert list(mailbox.posted()) == ["found"]
    assert list(mailbox.posted()) == []


def test_a_finalizer_needs_no_lock_whoever_holds_it(mailbox: Mailbox) -> None:
    del mailbox._lock  # whoever takes it, fails
    mailbox.post("found")

    assert list(mailbox.posted()) == ["found"]


def test_what_a_finalizer_has_left_before_ends_the_wait(mailbox: Mailbox) -> None:
    mailbox.post("left")

    assert mailbox.wait(monotonic())


def test_what_a_finalizer_leaves_wakes_the_consumer_and_is_no_message(mailbox: Mailbox) -> None:
    def leave() -> None:
        sleeping(mailbox)
        mailbox.post("left")

    assert run_together(lambda: mailbox.wait(monotonic() + PATIENCE_S / 4), leave) == [True, None]
    assert len(mailbox) == 0
    assert taken(mailbox) == []
    assert list(mailbox.posted()) == ["left"]


class Holder:
    """Holds something, until it is collected."""


def test_what_a_collected_holder_held_wakes_the_consumer_and_is_found(mailbox: Mailbox) -> None:
    holders = [Holder()]
    hold = mailbox.hold(holders[0], "held")

    def collect() -> None:
        sleeping(mailbox)
        holders.clear()

    assert run_together(lambda: mailbox.wait(monotonic() + PATIENCE_S / 4), collect) == [True, None]
    assert hold() is None
    assert list(mailbox.posted()) == ["held"]
    assert not mailbox.wait(monotonic())


def test_what_a_collected_holder_held_is_found_by_a_consumer_that_does_not_sleep(mailbox: Mailbox) -> None:
    _hold = mailbox.hold(Holder(), "held")

    assert list(mailbox.posted()) == ["held"]


def test_a_hold_that_nobody_keeps_says_nothing(mailbox: Mailbox) -> None:
    holder = Holder()
    mailbox.hold(holder, "given back before")
    del holder

    assert list(mailbox.posted()) == []


def test_a_sender_who_is_cut_short_leaves_nothing_without_a_word() -> None:
    class Cut(Mailbox):
        def _rouse(self) -> None:
            raise KeyboardInterrupt

    mailbox = Cut()
    with pytest.raises(KeyboardInterrupt):
        put(mailbox, 1)
    assert (len(mailbox), mailbox._bytes) == (0, 0)


def test_what_a_finalizer_leaves_while_the_consumer_looks_is_not_overlooked() -> None:
    class Collecting(Mailbox):
        def _next_lane(self) -> deque[Envelope] | None:
            if not self._returned:
                self.post("left")  # as the collector does, which may run anywhere
            return super()._next_lane()

    assert Collecting().wait(monotonic())


@pytest.mark.usefixtures("quick_switches")
def test_nothing_that_a_finalizer_leaves_is_overlooked_by_a_consumer_about_to_sleep() -> None:
    mailbox, count = Mailbox(), 3_000
    found: list[object] = []

    def consume() -> None:
        while len(found) < count:
            assert mailbox.wait(monotonic() + PATIENCE_S), "overlooked"
            found.extend(mailbox.posted())

    def leave() -> None:
        for number in range(count):
            mailbox.post(number)
            while len(found) <= number and number % 3:  # let it fall asleep at times
                sched_yield()

    run_together(consume, leave)

    assert found == list(range(count))


def test_in_a_forked_child_it_refuses_without_its_lock(mailbox: Mailbox) -> None:
    mailbox.forked()
    with mailbox._lock, pytest.raises(Refused) as raised:
        put(mailbox, 1, lane=Lane.SYSTEM)

    assert raised.value.code == "forked_process"
    assert len(mailbox) == 0


def test_a_mailbox_hears_of_a_fork(mailbox: Mailbox) -> None:
    assert any(watched() is mailbox for watched in forks._inherited.values())


def test_who_is_called_in_the_middle_of_its_own_call_may_send(mailbox: Mailbox) -> None:
    with mailbox._lock:  # as a finalizer or a signal handler finds it, in the very thread that holds it
        put(mailbox, 1)
        assert len(mailbox.take(9, 999)) == 1


def test_what_a_closed_mailbox_does_not_take_back_is_returned(mailbox: Mailbox) -> None:
    put(mailbox, 1)
    taken = mailbox.take(9, 999)
    mailbox.close(stopping)

    assert mailbox.put_back(taken) == taken
    assert len(mailbox) == 0
