"""Whatever happens to hosts, leases, turns, deadlines, transactions and processes: what each was told is what the run holds.

A host here, and others in two processes, share one run: they own it, ask for it, pass it on, delete it, are stopped, and are killed. A
ledger keeps what each was told.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import wraps
from typing import Any, ClassVar

import hypothesis
import pytest
from folder import descriptors, run_files
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from leaks import Before
from ledger import Deed, Ledger, Told
from neighbours import Neighbour, Neighbours, neighbours
from power import scratch
from turns import run_nodes, senders, until, waiting
from ways import files_of

import freehold
from freehold import DeadlineExceeded, Error, Event, Host, LeaseLost, OwnedElsewhere, Refused, Run, RunNotFound
from freehold import operations as op
from freehold.handle import Handle
from freehold.storage.path import resolve
from freehold.storage.pin import pin

PASSING_S = 20.0
"""How long it may take until a run that nobody needs any more has been given back."""
KINDS = ("append", "publish", "block", "apply", "restore")
"""What is asked of a lease and of a handle alike."""
OF_LEASES = (*KINDS, "transact", "quick")
ALONE = "import time\nwhile any(not child.name.startswith('.') for child in host.tree().children): time.sleep(0.002)"
FIRST = "handle = host.handle('a')"
SAY = "[note(event) for event in events]"
HANG_UP = f"handle.close()\n{FIRST}"

slots = st.integers(0, 1)
paths = st.sampled_from(["f", "f", "g", "h"])
sizes = st.sampled_from([0, 9, 200, 90_000])
patiences = st.sampled_from([None, None, None, None, None, 0.0, 0.002, 0.02])
whos = st.sampled_from(["lease", "handle", "handle", "there"])
asks = st.lists(st.tuples(whos, slots, st.sampled_from(OF_LEASES), paths, sizes, st.booleans(), patiences), min_size=1, max_size=3)


Ask = tuple[str, int, str, str, int, bool, float | None]
"""Who asks, in which process, for what with which file of how many bytes, with a request id or not, and how long it waits."""


class Call:
    """One call, as a line that anybody can carry out whose `run` is a lease or a handle; `events` are then what it has added."""

    def __init__(self, line: str, deeds: dict[str, Deed], request: str | None) -> None:
        self.line = line
        self.deeds = deeds
        self.request = request
        self.for_leases = "run.transact(" in line

    def by(self, run: Run | Handle) -> list[Event]:
        """Let it be carried out here."""
        known: dict[str, Any] = {"run": run, "op": op}
        exec(compile(self.line, "call", "exec"), known)
        events: list[Event] = known["events"]
        return events


class Slot:
    """A place for one neighbour: who lives there, whether it has a lease, whether it stands still, and what it has not answered yet."""

    def __init__(self) -> None:
        self.neighbour: Neighbour | None = None
        self.owns = False
        self.stopped = False
        self.pending: Call | None = None

    @property
    def is_awake(self) -> bool:
        return self.neighbour is not None and not self.stopped

    @property
    def who(self) -> Neighbour:
        assert self.neighbour is not None
        return self.neighbour


def happens(*, when: Callable[[Any], bool] = lambda _: True, **drawn: Any) -> Callable[[Callable[..., None]], Any]:
    """Make a method a rule that holds *when*, and let it be asked for something after each: that is what all of this is about."""

    def rule_of(happening: Callable[..., None]) -> Any:
        @wraps(happening)
        def step(self: Hosts, asks: list[Ask], **values: Any) -> None:
            happening(self, **values)
            self.ask(asks)

        as_rule: Any = rule  # its types do not know of names that are drawn for later
        return precondition(when)(as_rule(asks=asks, **drawn)(step))

    return rule_of


class Hosts(RuleBasedStateMachine):
    """One run, the hosts that share it, and what each of them was told."""

    village: ClassVar[Neighbours]
    lived = 0

    @initialize(owner=st.sampled_from(["here", "there", "nobody"]))
    def begin(self, owner: str) -> None:
        self.life = ExitStack()
        self.root = self.life.enter_context(scratch()) / "runs"
        self.before, self.descriptors = Before(), descriptors()
        self.path = resolve(self.root, "a")
        self.view = freehold.view(self.path.file)
        self.slots = (Slot(), Slot())
        self.leases: list[Run] = []
        self.ledger: Ledger | None = None
        self.requests: dict[str, Call] = {}
        self.count = 0
        self.open_host()
        self.ledger = Ledger()
        run = self.host.create("a")
        if owner == "here":
            self.leases.append(run)
        else:
            run.close()
        if owner == "there":
            self.own_there(0)

    def open_host(self) -> None:
        self.host: Host = freehold.open(self.root, timeout=20, idle_timeout=0.05)
        self.handle: Handle = self.host.handle("a")

    @property
    def kept(self) -> Ledger:
        assert self.ledger is not None
        return self.ledger

    # Who owns it

    @property
    def owner(self) -> Slot | None:
        return next((slot for slot in self.slots if slot.owns), None)

    @property
    def holder(self) -> int | None:
        """The process that has a lease on the run, as far as anybody was told."""
        if self.leases:
            return os.getpid()
        return None if self.owner is None else self.owner.who.pid

    def wanted(self, want: Callable[[], Any], mine: int | None = None) -> Any:
        """Ask for ownership of the run; return what that gives, or None where it was rightly refused."""
        if self.ledger is None:
            with pytest.raises(RunNotFound):
                want()
            return None
        if self.holder not in (None, mine):
            with pytest.raises(OwnedElsewhere) as caught:
                want()
            assert caught.value.executed == "no"
            assert caught.value.holder is not None
            assert caught.value.holder.pid == self.holder
            return None
        by = time.monotonic() + PASSING_S
        while True:
            try:
                return want()
            except (OwnedElsewhere, Refused) as error:  # whoever had it for a call is just giving it back
                if error.code not in ("owned_elsewhere", "run_in_use") or time.monotonic() > by:
                    raise
                self.hang_up()

    @happens()
    def open_here(self) -> None:
        run = self.wanted(lambda: self.host.open("a"), os.getpid())
        if run is not None:
            self.leases.append(run)

    @happens(when=lambda self: self.leases, number=st.integers(0, 5))
    def close_here(self, number: int) -> None:
        run = self.leases.pop(number % len(self.leases))
        run.close()
        with pytest.raises(Refused) as caught:
            run.append("late")
        assert caught.value.code == "lease_closed"
        self.hang_up()

    @happens(at=slots)
    def open_there(self, at: int) -> None:
        self.own_there(at)

    def own_there(self, at: int) -> None:
        slot = self.awake(at)
        if slot is not None and not slot.owns:
            slot.owns = self.wanted(lambda: slot.who.do("run = host.open('a')", "True")) is not None

    @happens(when=lambda self: self.is_owned_there)
    def close_there(self) -> None:
        slot = self.owner
        assert slot is not None
        slot.who.do("run.close()")
        slot.owns = False
        self.hang_up()

    def hang_up(self) -> None:
        """Let nobody's connection keep the run where it was asked for: for some seconds one holds a lease there."""
        self.handle.close()
        self.handle = self.host.handle("a")
        for slot in self.slots:
            if slot.is_awake:
                slot.who.do(HANG_UP)

    @happens()
    def open_the_host_again(self) -> None:
        self.host.close()
        for run in self.leases:
            with pytest.raises(LeaseLost):
                run.append("late")
            run.close()
        self.leases.clear()
        with pytest.raises(Refused) as caught:
            self.handle.append("late")
        assert caught.value.code == "host_closed"
        self.handle.close()
        self.open_host()

    @happens(when=lambda self: self.holder is None and self.ledger is not None)
    def let_it_be_given_back(self) -> None:
        self.hang_up()
        until(lambda: not run_nodes(self.host))
        for slot in self.slots:
            if slot.is_awake:
                slot.who.do(ALONE)
        pin(self.path, exclusive=True).close()

    @happens()
    def delete(self) -> None:
        if self.leases:
            with pytest.raises(Refused) as caught:
                self.host.delete("a")
            assert (caught.value.code, caught.value.executed) == ("run_in_use", "no")
            return

        def want() -> bool:
            self.host.delete("a")
            return True

        if self.wanted(want):
            self.ledger = None
            self.requests.clear()

    @happens(when=lambda self: self.ledger is None, here=st.booleans(), at=slots)
    def create(self, here: bool, at: int) -> None:
        slot = None if here else self.awake(at)
        if slot is None:
            self.leases.append(self.host.create("a"))
        else:
            slot.who.do("run = host.create('a')")
            slot.owns = True
        self.ledger = Ledger()

    # What is asked for

    def call(self, kind: str, path: str, size: int, request: bool) -> Call:
        """Return a call that adds events which nothing else is called after."""
        self.count += 1
        name = f"{self.count}"
        content = bytes([self.count % 256]) * size
        written = f"write_bytes({path!r}, bytes([{self.count % 256}]) * {size})"
        wanted = f"request {name}" if request and kind != "quick" else None
        options = f"request_id={wanted!r}"
        deeds: dict[str, Deed] = {name: {path: content}}
        match kind:
            case "append":
                line, deeds = f"events = [run.append({name!r}, {size}, {options})]", {name: {}}
            case "quick":
                line, deeds = f"events = [run.options(durable=False).append({name!r})]", {name: {}}
            case "publish":
                line = f"events = [run.publish({name!r}, lambda files: files.{written}, {options})]"
            case "block":
                line = f"with run.publish({name!r}, {options}) as files: files.{written}\nevents = [files.effect]"
            case "apply":
                steps = f"[op.append('{name} a'), op.{written}, op.append('{name} b')]"
                line, deeds = (
                    f"events = [each for each in run.apply({steps}, {options}) if each]",
                    {f"{name} a": {}, f"{name} b": deeds[name]},
                )
            case "restore":
                moments = [1, *(told.seq for told in self.kept.must.values())]
                at = moments[self.count * 7 % len(moments)]
                line, deeds = f"events = [run.restore({at}, name={name!r}, {options})]", {name: at}
            case _:
                work = f"lambda tx: [tx.append('{name} a'), tx.files.{written}, tx.append('{name} b')][::2]"
                line, deeds = f"events = run.transact({work}, {options})", {f"{name} a": {}, f"{name} b": deeds[name]}
        return Call(line, deeds, wanted)

    def asked(self, call: Call, how: Callable[[], list[Told]], *, may_fail: frozenset[str], again: bool = False) -> Error | None:
        """Ask, and note what was told; it may be one of these errors, which is returned."""
        if call.request is not None:
            self.requests[call.request] = call
        try:
            told = how()
        except Error as error:
            if error.code not in may_fail:
                raise
            self.kept.fail(call.deeds, error)
            return error
        self.kept.acknowledge(call.deeds, told, again=again)
        return None

    def ask_with(
        self, run: Run | Handle, call: Call, patience: float | None, may_fail: frozenset[str], *, again: bool = False
    ) -> Error | None:
        def how() -> list[Told]:
            with freehold.fail_after(10 if patience is None else patience):
                return [Told(event.seq, event.hash) for event in call.by(run)]

        return self.asked(call, how, may_fail=may_fail, again=again)

    @rule(asks=asks)
    def ask(self, asks: list[Ask]) -> None:
        """Ask a few times: with a lease, with a handle, and in another process with the lease or the handle there."""
        # Of one that stands still there is no answer for a while, and one of those is enough.
        for who, at, kind, path, size, request, patience in asks[: 1 if self.owner is not None and self.owner.stopped else None]:
            if self.ledger is None:
                return
            slot = self.awake(at) if who == "there" else None
            has_lease = bool(self.leases) if slot is None else slot.owns
            by_lease = has_lease and who != "handle"
            call = self.call(kind if by_lease else KINDS[OF_LEASES.index(kind) % len(KINDS)], path, size, request=request)
            self.kept.ask(call.deeds)
            if slot is not None:
                self.ask_there(slot, call, patience, by_lease=by_lease)
            elif by_lease:
                self.ask_with(self.leases[-1], call, patience, late(patience))
            else:
                self.ask_with(self.handle, call, *self.patience_with_others(patience))

    def patience_with_others(self, patience: float | None) -> tuple[float | None, frozenset[str]]:
        """Return how long an answer is waited for, and which errors may come instead: of an owner that stands still, there is none."""
        owner = self.owner
        if owner is not None and owner.stopped:
            return 0.1, frozenset({"deadline_exceeded"})
        # What was published by a request of which nobody knew may come to be between the beginning of a block and its end.
        return patience, late(patience) | frozenset({"conflict"})

    def ask_there(self, slot: Slot, call: Call, patience: float | None, *, by_lease: bool) -> None:
        """Let a neighbour ask."""
        allowed, may_fail = self.patience_with_others(patience)
        begin = f"run_or_handle = {'run' if by_lease else 'handle'}\nwith freehold.fail_after({10 if allowed is None else allowed}):\n"
        lines = begin + indented(call.line.replace("run.", "run_or_handle."))
        self.asked(call, lambda: [Told(*each) for each in slot.who.do(lines, SAY)], may_fail=may_fail)

    @happens(
        when=lambda self: self.requests and (self.owner is None or not self.owner.stopped), number=st.integers(0, 50), here=st.booleans()
    )
    def ask_again(self, number: int, here: bool) -> None:
        """The same request once more: it tells what has come of the first one, or is carried out now."""
        self.repeat(number, here=here)

    def repeat(self, number: int, *, here: bool) -> None:
        call = list(self.requests.values())[number % len(self.requests)]
        run = self.leases[0] if self.leases and (here or call.for_leases) else self.handle
        if isinstance(run, Handle) and call.for_leases:
            return
        if next(iter(call.deeds)) in self.kept.never:
            for name in call.deeds:
                self.kept.never.pop(name)
            self.kept.ask(call.deeds)
        again = next(iter(call.deeds)) in self.kept.must or self.is_there(call)
        self.ask_with(run, call, None, frozenset({"conflict"}), again=again)

    def is_there(self, call: Call) -> bool:
        return next(iter(call.deeds)) in {event.name for event in self.view.history()}

    # Transactions that span messages

    @happens(
        when=lambda self: self.leases,
        end=st.sampled_from(["commit", "commit", "raise", "time"]),
        path=paths,
        size=sizes,
        at=slots,
        durable=st.booleans(),
    )
    def span_messages(self, end: str, path: str, size: int, at: int, durable: bool) -> None:
        """In a block others wait; it is kept whole or not at all."""
        first, lost, other, theirs = (self.call(kind, path, size, request=False) for kind in ("apply", "block", "append", "append"))
        (one, two), (undone,) = first.deeds, lost.deeds
        slot = self.awake(at)
        asked = [first, lost, other] if slot is None else [first, lost, other, theirs]
        for call in asked:
            self.kept.ask(call.deeds)
        timeout = 0.05 if end == "time" else 20
        error: BaseException | None = None
        run = self.leases[0].options(durable=durable)
        with senders(1) as go:
            try:
                with run.transaction(timeout=timeout) as tx:
                    answer = go(other.by, self.handle)
                    if slot is not None:
                        slot.who.tell("mine = handle\n" + theirs.line.replace("run.", "mine."), SAY)
                    events = [tx.append(one)]
                    with suppress(ZeroDivisionError), tx.savepoint():  # undone by it
                        tx.files.write_bytes(path, b"undone")
                        tx.append(undone)
                        raise ZeroDivisionError
                    tx.files.write_bytes(path, content_of(first))
                    events.append(tx.append(two))
                    if end == "time":
                        until(answer.done)
                    else:
                        waiting(run, len(asked) - 2)
                        assert not answer.done()
                    if end == "raise":
                        raise ZeroDivisionError
            except (ZeroDivisionError, DeadlineExceeded, Refused) as ended:
                error = ended
            self.kept.fail([undone], Refused("it was undone"))
            if end == "commit":
                assert error is None
                self.kept.acknowledge(first.deeds, [Told(event.seq, event.hash) for event in events])
            else:
                self.kept.fail(first.deeds, error if isinstance(error, Error) else Refused("it was undone"))
                assert type(error) is (ZeroDivisionError if end == "raise" else DeadlineExceeded)
            told = [(other, [Told(event.seq, event.hash) for event in answer.result(30)])]
        if slot is not None:
            told.append((theirs, [Told(*each) for each in slot.who.hear()]))
        for call, each in sorted(told, key=lambda pair: pair[1][0].seq):
            self.kept.acknowledge(call.deeds, each)

    @happens(
        when=lambda self: self.is_owned_there, end=st.sampled_from(["commit", "raise", "kill"]), patience=st.sampled_from([None, 0.02])
    )
    def span_messages_there(self, end: str, patience: float | None) -> None:
        """Who asks while another process is inside a block waits for its end, or as long as it may."""
        slot = self.owner
        assert slot is not None
        inside, other = self.call("append", "f", 9, request=False), self.call("append", "f", 9, request=True)
        (name,) = inside.deeds
        self.kept.ask(inside.deeds)
        self.kept.ask(other.deeds)
        slot.who.do(f"block = run.transaction(timeout=20)\ntx = block.__enter__()\nevents = [tx.append({name!r})]")
        with senders(1) as go:
            answer = go(self.ask_with, self.handle, other, patience, late(patience) | frozenset({"no_answer"}))
            if patience is not None:
                assert isinstance(answer.result(30), DeadlineExceeded)
            if end == "commit":
                told = [Told(*each) for each in slot.who.do("block.__exit__(None, None, None)", SAY)]
            elif end == "raise":
                slot.who.do("block.__exit__(ZeroDivisionError, ZeroDivisionError(), None)")
            else:
                self.kill(slot)
            answer.result(30)
        if end == "commit":
            self.kept.acknowledge(inside.deeds, told, again=True)
        else:
            self.kept.fail(inside.deeds, Refused("it was undone"))

    # Stops and crashes

    def awake(self, at: int) -> Slot | None:
        """Return a neighbour that can be told something, a new one where nobody lives; None of one that stands still."""
        slot = self.slots[at]
        if slot.neighbour is None:
            slot.neighbour = self.village.new(self.root)
            slot.who.do(FIRST)
        return None if slot.stopped else slot

    @happens(when=lambda self: self.any_awake, at=slots)
    def stop(self, at: int) -> None:
        slot = self.slots[at] if self.slots[at].is_awake else self.slots[1 - at]
        self.hang_up()
        if not slot.owns:
            slot.who.do(ALONE)
        slot.who.stop()
        slot.stopped = True

    @property
    def any_awake(self) -> bool:
        return any(slot.is_awake for slot in self.slots)

    @property
    def is_owned_there(self) -> bool:
        """Whether a neighbour has a lease, and is awake."""
        return self.owner is not None and self.owner.is_awake

    @happens(when=lambda self: self.is_owned_there, kind=st.sampled_from(["append", "block", "apply", "transact", "quick"]))
    def stop_in_the_middle_of_a_commit(self, kind: str) -> None:
        """It keeps the file's write lock while it stands still."""
        slot = self.owner
        assert slot is not None
        call = self.call(kind, "g", 9, request=False)
        self.kept.ask(call.deeds)
        slot.who.do(f"{HANG_UP}\nin_the_middle(store.Store, 'commit', signal.SIGSTOP)")
        slot.who.tell(call.line, SAY)
        slot.who.has_stopped()
        slot.stopped, slot.pending = True, call

    @happens(when=lambda self: any(slot.stopped for slot in self.slots), at=slots)
    def go_on(self, at: int) -> None:
        slot = self.slots[at] if self.slots[at].stopped else self.slots[1 - at]
        slot.who.go_on()
        slot.stopped = False
        call, slot.pending = slot.pending, None
        if call is not None:
            self.kept.acknowledge(call.deeds, [Told(*each) for each in slot.who.hear()], again=True)

    @happens(when=lambda self: any(slot.neighbour is not None for slot in self.slots), at=slots)
    def kill_it(self, at: int) -> None:
        self.kill(self.slots[at] if self.slots[at].neighbour is not None else self.slots[1 - at])

    def kill(self, slot: Slot) -> None:
        slot.who.kill()
        self.gone(slot)

    def gone(self, slot: Slot) -> None:
        slot.neighbour, slot.owns, slot.stopped = None, False, False
        call, slot.pending = slot.pending, None
        if call is not None:
            assert not self.is_there(call)  # it stood before its COMMIT

    @happens(when=lambda self: self.any_awake, at=slots)
    def let_it_end(self, at: int) -> None:
        slot = self.slots[at] if self.slots[at].is_awake else self.slots[1 - at]
        slot.who.end()
        self.gone(slot)

    @happens(
        when=lambda self: self.is_owned_there, after=st.booleans(), kind=st.sampled_from(["append", "block", "apply"]), again=st.booleans()
    )
    def kill_in_the_middle_of_a_commit(self, after: bool, kind: str, again: bool) -> None:
        """Nobody is told whether it was carried out; the file, and its request id, tell it."""
        slot = self.owner
        assert slot is not None
        call = self.call(kind, "h", 9, request=True)
        self.kept.ask(call.deeds)
        slot.who.do(f"in_the_middle(store.Store, 'commit', signal.SIGKILL, after={after})")
        error = self.ask_with(self.handle, call, None, frozenset({"no_answer"}))
        assert error is not None
        assert error.executed == "unknown"
        slot.who.is_killed()
        self.gone(slot)
        kept = after and kind != "block"  # a block sends its pieces first
        assert self.is_there(call) is kept
        if again:
            assert self.ask_with(self.handle, call, None, frozenset(), again=kept) is None

    # What must be true

    @invariant()
    def the_run_holds_what_each_was_told(self) -> None:
        if not hasattr(self, "view"):
            return
        if self.ledger is None:
            assert (self.view.exists, list(self.view.history())) == (False, [])
            return
        while True:
            events, files = list(self.view.history()), files_of(self.view.files)
            if len(events) == self.view.info.events:
                break
        trees = self.kept.check(events)
        assert {path: content for path, (_, content) in files.items()} == trees[-1]

    def teardown(self) -> None:
        try:
            self.end()
            Hosts.lived += 1
        finally:
            self.village.kill()
            for run in self.leases:
                run.close()
            self.host.close()
            self.life.close()

    def end(self) -> None:
        """Let all come to an end, ask once more for all that nobody knows of, and show that nothing was left."""
        for slot in self.slots:
            if slot.stopped:
                self.kill(slot)
            elif slot.neighbour is not None:
                slot.who.end()
                self.gone(slot)
        while self.leases:
            self.leases.pop().close()
        if self.ledger is not None:
            self.host.open("a").close()  # what a killed owner has left is taken over
            for number in range(len(self.requests)):
                self.repeat(number, here=False)
            self.the_run_holds_what_each_was_told()
            trees = self.kept.check(list(self.view.history()))
            for seq in range(1, len(trees)):
                assert {path: content for path, (_, content) in files_of(self.view.snapshot(seq)).items()} == trees[seq]
        self.handle.close()
        self.host.close()
        assert run_files(self.root) == ([] if self.ledger is None else ["a.sqlite"])
        if self.ledger is not None:
            self.view.verify()
        assert self.before.left() == []
        until(lambda: descriptors() <= self.descriptors)


def late(patience: float | None) -> frozenset[str]:
    """Return the errors that may come of a call that is waited for so long."""
    return frozenset() if patience is None else frozenset({"deadline_exceeded"})


def indented(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())


def content_of(call: Call) -> bytes:
    """Return what a call writes into its one file."""
    *_, deed = call.deeds.values()
    assert not isinstance(deed, int)
    (content,) = deed.values()
    assert content is not None
    return content


def live(lives: int, steps: int, seed: int) -> None:
    """Let so many lives of so many steps go by."""
    before = Hosts.lived
    # A life that fails is told as it was: with real processes, a shorter one would take minutes to find.
    chosen = settings(
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        phases=(Phase.generate,),
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with neighbours() as Hosts.village:
        run_state_machine_as_test(hypothesis.seed(seed)(Hosts), settings=chosen)
    assert Hosts.lived - before >= lives


@pytest.mark.timeout(180)  # with processes that are stopped, and waited for
def test_what_each_was_told_is_what_the_run_holds(seed: int) -> None:
    live(16, 15, seed)


@pytest.mark.prove
@pytest.mark.parametrize("part", range(4))
def test_in_four_hundred_long_lives_what_each_was_told_is_what_the_run_holds(part: int, seed: int) -> None:
    live(100, 30, seed + 1 + part)
