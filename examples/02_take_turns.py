"""A tour of one run: append, transact, wait your turn, look at it. Nothing here needs a server, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import freehold
from freehold import DeadlineExceeded, OwnedElsewhere, Run, Transaction


def append(run: Run) -> None:
    """Add to the journal. What is returned is on disk already, and a request id makes it safe to ask again."""
    first = run.append("order", {"item": "tea", "cups": 2}, request_id="order-1")
    again = run.append("order", {"item": "tea", "cups": 2}, request_id="order-1")
    print(f"event {first.seq}: {first.data}; asked again it is the same event: {first == again}")


def transact(run: Run) -> None:
    """Do several things or none. An exception undoes its own savepoint or transaction, and nothing else."""

    def brew(tx: Transaction) -> str:
        tx.append("brewing", {"at": tx.now})
        try:
            with tx.savepoint():
                tx.append("biscuits")
                raise LookupError("no biscuits left")
        except LookupError as error:
            tx.append("apology", str(error))
        return "served"

    print(f"transact returned {run.transact(brew)!r}; the biscuits are undone, the rest is kept")
    try:
        run.transact(lambda tx: [tx.append("spilt"), 1 / 0])
    except ZeroDivisionError:
        print(f"its own exception came back, and nothing was spilt: {list(run.history(name='spilt'))}")


def hold(run: Run) -> None:
    """Hold a transaction open in this thread; everybody else waits, and nobody for ever."""

    def impatient() -> str:
        with freehold.fail_after(0.1):  # bounds every call made inside
            return run.append("late").name or ""

    with ThreadPoolExecutor(1) as pool, run.transaction() as tx:
        tx.append("washing up")
        try:
            pool.submit(impatient).result()
        except DeadlineExceeded as error:
            print(f"somebody waited for 0.1 s and gave up; was it carried out? {error.executed}")


def execute(run: Run) -> None:
    """Begin an execution and settle it, each together with what belongs to it."""
    number = run.transact(lambda tx: tx.begin_execution())
    print(f"execution {number} is {run.info.status}")
    run.transact(lambda tx: tx.settle("completed", event=tx.append("paid", {"euros": 4})))
    print(f"it is {run.info.status}, and event {run.info.stop_event} says why")


def ask_from_elsewhere(root: str) -> None:
    """Be the second process: only one can own a run, but anybody may look at it."""
    with freehold.open(root) as host:
        try:
            host.open("tea").close()
        except OwnedElsewhere as error:
            print(f"a second process is told: {error}")  # error.holder has pid, hostname and since as values
        print(f"and sees {host.view('tea').info.events} events all the same", flush=True)


def main() -> None:
    """Take the tour in a folder that is gone afterwards."""
    if len(sys.argv) > 1:
        ask_from_elsewhere(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as root:
        with freehold.open(root) as host, host.create("tea", props={"table": 7}) as run:
            for part in (append, transact, hold, execute):
                part(run)
            subprocess.run([sys.executable, __file__, root], check=True)  # noqa: S603 - this file
            print(host.tree())
        view = freehold.view(f"{root}/tea.sqlite")  # nobody owns it now, and looking changes nothing
        view.verify()
        for event in view.history():
            print(f"{event.seq:3} {event.kind:8} {event.name or '':12} {event.hash[:12]}")


if __name__ == "__main__":
    main()
