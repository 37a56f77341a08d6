"""One runner at a step at a time; the others wait until it is over, and nobody waits for himself."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.actors.claims import Claim, Claims
from freehold.actors.deadline import monotonic
from freehold.actors.envelope import Envelope
from freehold.actors.leases import Lease, lost
from freehold.actors.reply import Reply
from freehold.schema.errors import Error, MailboxFull, Refused, StorageFailed
from freehold.schema.limits import STEP_WAITERS_MAX, WAIT_BEYOND_S
from freehold.schema.messages import BeginStep, EndStep
from freehold.schema.steps import Again, Go, Recorded

GO = Go(1, "k")


def begin(claim: Claim | None, lease: Lease | None = None, position: str = "key/a", deadline: float | None = None) -> Envelope:
    return Envelope(BeginStep(position, position[4:], None), Reply(), lease or Lease(), deadline=deadline, claim=claim)


def end(claim: Claim, lease: Lease | None = None, position: str = "key/a") -> Envelope:
    return Envelope(EndStep(position, position[4:], 1, None, "1", final=True), Reply(), lease or Lease(), claim=claim)


def let_in(claims: Claims, envelope: Envelope, value: Any = None, error: Error | None = None) -> None:
    """Let one in that is answered in the same turn."""
    assert claims.admit(envelope)
    envelope.value, envelope.error = value, error
    envelope.answer()
    claims.settle()


def answer(envelope: Envelope) -> Any:
    """Return what it was answered with, None if it waits."""
    assert envelope.reply_to is not None
    return envelope.reply_to.get(0) if envelope.reply_to.is_set else None


def refusal(envelope: Envelope) -> Refused:
    with pytest.raises(Refused) as caught:
        answer(envelope)
    return caught.value


@pytest.fixture
def claims() -> Claims:
    return Claims()


def test_who_asks_for_a_step_that_somebody_is_at_waits_until_it_has_ended(claims: Claims) -> None:
    one = Claim()
    let_in(claims, begin(one), GO)
    other, elsewhere = begin(Claim()), begin(Claim(), position="key/b")
    assert not claims.admit(other)
    assert claims.admit(elsewhere)
    assert answer(other) is None
    let_in(claims, end(one), "written")

    assert answer(other) == Again()
    assert claims.admit(begin(Claim()))


@pytest.mark.parametrize(("value", "error"), [(Recorded("1"), None), (None, Refused("x", code="step_unknown"))])
def test_a_step_that_may_not_begin_is_claimed_by_nobody(claims: Claims, value: Any, error: Error | None) -> None:
    first = begin(Claim())
    assert claims.admit(first)
    waiting = begin(Claim())
    assert not claims.admit(waiting)  # in the same batch nobody knows yet
    first.value, first.error = value, error
    first.answer()
    claims.settle()

    assert answer(waiting) == Again()
    assert claims.admit(begin(Claim()))


def test_an_end_that_was_not_kept_leaves_its_runner_at_the_step(claims: Claims) -> None:
    one = Claim()
    let_in(claims, begin(one), GO)
    let_in(claims, end(one), error=StorageFailed("full"))

    assert not claims.admit(begin(Claim()))
    let_in(claims, end(one), "written")
    assert claims.admit(begin(Claim()))


def test_only_the_runner_records_what_a_step_came_to(claims: Claims) -> None:
    one = Claim()
    let_in(claims, begin(one), GO)
    for late in (end(Claim()), end(one, position="key/b"), begin(None, position="key/b")):
        assert not claims.admit(late)
        error = refusal(late)
        assert (error.code, error.executed) == ("claim_lost", "no")
    claims.give_back(one)

    late = end(one)
    assert not claims.admit(late)
    assert refusal(late).code == "claim_lost"


@pytest.mark.parametrize("how", ["closed", "lost"])
def test_a_claim_ends_with_its_lease(claims: Claims, how: str) -> None:
    one, lease = Claim(), Lease()
    let_in(claims, begin(one, lease), GO)
    waiting = begin(Claim())
    assert not claims.admit(waiting)
    if how == "closed":
        lease.closed = True
    else:
        lease.lost = lost("a", None)
    claims.sweep()

    assert answer(waiting) == Again()
    late = end(one, lease)
    assert not claims.admit(late)
    assert refusal(late).code == "claim_lost"


def test_a_runner_whose_lease_has_ended_records_nothing(claims: Claims) -> None:
    one, lease = Claim(), Lease()
    let_in(claims, begin(one, lease), GO)
    lease.closed = True
    late = end(one, lease)

    assert not claims.admit(late)
    assert refusal(late).code == "claim_lost"


def test_who_comes_after_a_lease_has_ended_does_not_wait(claims: Claims) -> None:
    lease = Lease()
    let_in(claims, begin(Claim(), lease), GO)
    lease.closed = True

    assert claims.admit(begin(Claim()))


def test_a_claim_that_is_given_back_ends_or_waits_no_more(claims: Claims) -> None:
    one, gone, other = Claim(), Claim(), Claim()
    let_in(claims, begin(one), GO)
    waits, goes = begin(other), begin(gone)
    assert not claims.admit(goes)
    assert not claims.admit(waits)
    claims.give_back(gone)
    claims.give_back(Claim())
    assert answer(waits) is None
    claims.give_back(one)

    assert answer(waits) == Again()
    assert answer(goes) is None


def test_what_no_commit_has_answered_yet_is_settled_when_it_was(claims: Claims) -> None:
    one = Claim()
    doubtful = begin(one)
    assert claims.admit(doubtful)
    claims.settle()
    assert not claims.admit(begin(Claim()))
    doubtful.error = StorageFailed("x")
    doubtful.answer()
    claims.settle()

    assert claims.admit(begin(Claim()))


def test_an_end_in_doubt_that_was_kept_ends_the_claim(claims: Claims) -> None:
    one = Claim()
    let_in(claims, begin(one), GO)
    doubtful = end(one)
    assert claims.admit(doubtful)
    claims.settle()
    doubtful.value = "written"
    doubtful.answer()
    claims.settle()

    assert claims.admit(begin(Claim()))


def test_who_waits_is_told_to_ask_again_after_a_while_and_before_its_deadline(claims: Claims) -> None:
    let_in(claims, begin(Claim()), GO)
    now = monotonic()
    patient, hasty = begin(Claim()), begin(Claim(), deadline=now + 1)
    assert not claims.admit(patient)
    assert not claims.admit(hasty)

    assert now + 0.9 < claims.soonest(now + 100) < now + 1
    assert claims.soonest(now) == now
    claims.ask_again(now + 1)
    assert (answer(patient), answer(hasty)) == (None, Again())
    claims.ask_again(now + WAIT_BEYOND_S + 1)
    assert answer(patient) == Again()


def test_all_are_told_to_ask_again_when_the_owner_goes(claims: Claims) -> None:
    let_in(claims, begin(Claim()), GO)
    waiting = [begin(Claim()) for _ in range(3)]
    assert not any(map(claims.admit, waiting))
    claims.ask_again()

    assert [answer(one) for one in waiting] == [Again()] * 3


def test_so_many_may_wait_and_no_more(claims: Claims) -> None:
    let_in(claims, begin(Claim()), GO)
    assert not any(claims.admit(begin(Claim())) for _ in range(STEP_WAITERS_MAX))
    one_more = begin(Claim())
    assert not claims.admit(one_more)

    with pytest.raises(MailboxFull):
        answer(one_more)


def test_two_who_would_wait_for_each_other_do_not(claims: Claims) -> None:
    one, other, third = Claim(), Claim(), Claim()
    for claim, position in ((one, "key/a"), (other, "key/b"), (third, "key/c")):
        let_in(claims, begin(claim, position=position), GO)
    assert not claims.admit(begin(Claim((one,)), position="key/b"))
    assert not claims.admit(begin(Claim((other,)), position="key/c"))
    waits = begin(Claim(), position="key/a")
    assert not claims.admit(waits)
    round_again = begin(Claim((third,)), position="key/a")
    assert not claims.admit(round_again)

    assert refusal(round_again).code == "ask_cycle"
    assert answer(waits) is None


def test_a_step_inside_another_may_wait_for_a_third(claims: Claims) -> None:
    one, other = Claim(), Claim()
    let_in(claims, begin(one), GO)
    let_in(claims, begin(other, position="key/b"), GO)
    waits = begin(Claim((one,)), position="key/b")

    assert not claims.admit(waits)
    assert answer(waits) is None
    assert not claims.admit(again := begin(Claim((one,)), position="key/b"))
    assert answer(again) is None
