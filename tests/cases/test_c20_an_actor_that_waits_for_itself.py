"""C20: whoever would wait for itself is refused at once, with the name of what it is in; both sides go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import freehold
from freehold import InsideTransaction, Refused, Transaction
from freehold.actors import Actor, ActorRef, ChildSpec, Supervisor, SupervisorSpec


@pytest.mark.parametrize("spanning", [False, True], ids=["turn", "block"])
def test_a_run_that_is_asked_from_inside_refuses_at_once(tmp_path: Path, *, spanning: bool) -> None:
    with freehold.open(tmp_path) as host, host.create("r1") as run, freehold.fail_after(10):
        calls: list[Callable[[], object]] = [
            lambda: run.info,
            lambda: run.append("lost"),
            lambda: run.transact(lambda _tx: None),
            lambda: host.open("r1"),
            lambda: host.view("r1").info,
            lambda: host.delete("r1"),
            host.close,
        ]
        codes = []

        def try_all() -> None:
            for call in calls:
                with pytest.raises(InsideTransaction) as caught:
                    call()
                codes.append(caught.value.code)
                assert "r1" in str(caught.value)

        def work(tx: Transaction) -> None:
            try_all()
            tx.append("kept")

        if spanning:
            with run.transaction() as tx:
                work(tx)
        else:
            run.transact(work)
        assert codes == ["inside_transaction"] * len(calls)
        assert [event.name for event in run.history(after=1)] == ["kept"]


def test_two_runs_that_ask_each_other_are_refused_with_both_names_and_go_on(tmp_path: Path) -> None:
    with freehold.open(tmp_path) as host, host.create("r1") as one, host.create("r2") as two, freehold.fail_after(10):
        with pytest.raises(Refused) as caught:
            one.transact(lambda tx: (tx.append("lost"), two.transact(lambda _tx: one.info)))
        assert caught.value.code == "ask_cycle"
        assert "r1 asks r2 asks r1" in str(caught.value)
        assert one.append("x").seq == two.append("x").seq == 2


class Relay(Actor[str]):
    """Asks whoever it was told of."""

    def __init__(self, friends: dict[str, ActorRef[str]]) -> None:
        self.friends = friends

    def receive(self, message: str) -> object:
        first, _, rest = message.partition(" ")
        return self.friends[first].ask(rest) if first else "end"


def test_actors_that_ask_in_a_circle_are_refused_and_live_on() -> None:
    friends: dict[str, ActorRef[str]] = {}
    spec = SupervisorSpec("ring", [ChildSpec(name, lambda: Relay(friends)) for name in ("a", "b", "c")])
    with Supervisor(spec) as ring, freehold.fail_after(10):
        friends |= {name: ring[name] for name in ("a", "b", "c")}
        for words, code in (("a", "inside_transaction"), ("b a", "ask_cycle"), ("b c a", "ask_cycle"), ("b c b", "ask_cycle")):
            with pytest.raises(Refused) as caught:
                ring["a"].ask(words)
            assert caught.value.code == code
        assert ring["a"].ask("b c") == "end"
