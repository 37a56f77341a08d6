"""An owner that stands still (SIGSTOP) keeps its run, whatever it was at; when it wakes it goes on, or finds its run taken from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from neighbours import Neighbour, Neighbours
from other import write
from turns import names, senders

import freehold
from freehold import DeadlineExceeded, Error, Host, OwnedElsewhere
from freehold.handle import Handle

NEXT_TENURE = "SELECT epoch + 1, (SELECT txn FROM run), host, boot, pid, pid_ns, pid_start, opened_at, opened_at, NULL FROM tenure"
BY_FORCE = (
    "BEGIN IMMEDIATE",
    "UPDATE run SET epoch = epoch + 1, txn = txn + 1",
    f"INSERT INTO tenure {NEXT_TENURE} ORDER BY epoch DESC LIMIT 1",
    "COMMIT",
)
"""What an owner does that does not ask for the lock."""
MOMENTS = {
    "at rest": ("None", "os.kill(os.getpid(), signal.SIGSTOP)"),
    "before its BEGIN": ("in_the_middle(transaction.Transaction, 'begin', signal.SIGSTOP)", "run.append('its own')"),
    "before its COMMIT": ("in_the_middle(store.Store, 'commit', signal.SIGSTOP)", "run.append('its own')"),
    "after its COMMIT": ("in_the_middle(store.Store, 'commit', signal.SIGSTOP, after=True)", "run.append('its own')"),
    "in a block": (
        "block = run.transaction(timeout=60)\ntx = block.__enter__()\ntx.append('its own')",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ),
    "bringing its -wal home": ("in_the_middle(wal.Wal, 'checkpoint', signal.SIGSTOP)", "run.close()\nhost.close()"),
    "after its take-over": (
        "run.close()\nhost.close()\nhost = freehold.open(root)\nin_the_middle(tenure, 'take_over', signal.SIGSTOP, after=True)",
        "run = host.open('a')",
    ),
    "before it lets go": ("in_the_middle(store.Store, 'close', signal.SIGSTOP)", "run.close()\nhost.close()"),
}
"""Where it is stopped: what it is told first, and what it does then."""
END = {"in a block": "block.__exit__(None, None, None)"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    with freehold.open(folder) as host, host.create("a") as run:
        run.append("past")
    return folder


@pytest.fixture
def host(root: Path) -> Iterator[Host]:
    with freehold.open(root, timeout=20) as host:
        yield host


@pytest.fixture
def handle(host: Host) -> Iterator[Handle]:
    with host.handle("a") as handle:
        yield handle


@pytest.fixture
def owner(village: Neighbours, root: Path) -> Iterator[Neighbour]:
    found = village.new(root)
    found.do("from freehold.storage import tenure, transaction, wal\nrun = host.open('a')\nrun.append('kept')")
    yield found
    found.kill()


def said(root: Path) -> list[str]:
    return names(freehold.view(root / "a.sqlite"))


def stalled(owner: Neighbour, moment: str) -> None:
    """Let it come to a moment, and stand still there."""
    first, then = MOMENTS[moment]
    owner.do(first)
    owner.tell(then)
    owner.has_stopped()


@pytest.mark.parametrize("moment", MOMENTS)
def test_nobody_takes_its_run_and_when_it_wakes_it_goes_on(host: Host, handle: Handle, root: Path, owner: Neighbour, moment: str) -> None:
    stalled(owner, moment)
    kept = ["past", "kept", "its own"] if moment == "after its COMMIT" else ["past", "kept"]

    for call in (lambda: host.open("a"), lambda: host.delete("a")):
        with pytest.raises(OwnedElsewhere) as caught:
            call()
        assert caught.value.executed == "no"
        assert caught.value.holder is not None
        assert caught.value.holder.pid == owner.pid
    with freehold.fail_after(0.3), pytest.raises((DeadlineExceeded, OwnedElsewhere)) as late:
        handle.append("late", request_id="r")
    assert late.value.executed in ("no", "unknown")
    assert said(root) == kept  # looking waits for nobody

    owner.go_on()
    owner.hear()
    if moment in END:
        owner.do(END[moment])
    with freehold.fail_after(10):
        assert handle.append("late", request_id="r").name == "late"
        assert handle.append("afterwards").name == "afterwards"
    its_own = [] if moment in ("at rest", "bringing its -wal home", "after its take-over", "before it lets go") else ["its own"]
    found = said(root)
    assert sorted(found) == sorted(["past", "kept", *its_own, "late", "afterwards"])
    owner.end()
    freehold.view(root / "a.sqlite").verify()


@pytest.mark.parametrize("moment", MOMENTS)
def test_when_it_is_killed_others_who_wait_take_over_and_nothing_acknowledged_is_lost(
    host: Host, handle: Handle, root: Path, owner: Neighbour, moment: str
) -> None:
    stalled(owner, moment)
    others = [host.handle("a") for _ in range(4)]

    def ask(number: int) -> str:
        try:
            others[number].append(f"{number}", request_id=f"{number}")
        except Error as error:
            return error.executed
        return "yes"

    with senders(4) as go:
        calls = [go(ask, number) for number in range(4)]
        with freehold.fail_after(0.2), pytest.raises((DeadlineExceeded, OwnedElsewhere)):
            handle.append("before its end")
        owner.kill()
        told = [call.result(30) for call in calls]
    there = said(root)
    assert there[:2] == ["past", "kept"]
    assert "before its end" not in there
    assert ("its own" in there) == (moment == "after its COMMIT")
    assert [told[number] for number in range(4) if f"{number}" in there and told[number] == "no"] == []
    for number in range(4):
        others[number].append(f"{number}", request_id=f"{number}")
        others[number].close()
    assert sorted(said(root)) == sorted([*(name for name in there if not name.isdigit()), *"0123"])
    freehold.view(root / "a.sqlite").verify()


@pytest.mark.parametrize("moment", ["at rest", "before its BEGIN"])
def test_one_whose_run_was_taken_by_force_meanwhile_writes_nothing_and_loses_its_leases(
    host: Host, handle: Handle, root: Path, owner: Neighbour, moment: str
) -> None:
    stalled(owner, moment)
    write(root / "a.sqlite", *BY_FORCE)
    taken = freehold.view(root / "a.sqlite").info.txn

    owner.go_on()
    with pytest.raises(Error) as first:
        owner.hear()
        owner.do("run.append('its own')")
    assert (first.value.code, first.value.details["fence"], first.value.executed) == ("storage_failed", "epoch", "no")
    with pytest.raises(Error) as then:
        owner.do("run.append('its own')")
    assert (then.value.code, then.value.executed) == ("lease_lost", "no")
    assert said(root) == ["past", "kept"]
    assert freehold.view(root / "a.sqlite").info.txn - taken <= 1  # it may own it again, as anybody may
    owner.end()
    handle.append("afterwards")
    assert said(root) == ["past", "kept", "afterwards"]


@pytest.mark.parametrize("moment", ["before its COMMIT", "in a block"])
def test_one_that_holds_the_write_lock_cannot_be_written_over(root: Path, owner: Neighbour, moment: str) -> None:
    stalled(owner, moment)
    with pytest.raises(Exception, match="status 1"):
        write(root / "a.sqlite", "PRAGMA busy_timeout = 50", "UPDATE run SET epoch = epoch + 1")

    owner.go_on()
    owner.hear()
    owner.do(END.get(moment, "None"))
    assert said(root) == ["past", "kept", "its own"]
    owner.end()
