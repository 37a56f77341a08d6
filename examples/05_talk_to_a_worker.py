"""A worker owns a run and answers what others ask of it; it is killed in the middle, started again, and answers each request once.

Three processes: the worker, which owns the run; an asker, which has a handle on it; and this program, which starts both, kills the
worker with SIGKILL when half of the answers are there, starts another one, and looks at the end whether everything held.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic, sleep

import freehold
from freehold import Error, Event, Handle, Host, OwnedElsewhere, Run
from freehold import operations as op

REQUESTS = 40
THREADS = 4
PATIENCE_S = 30.0
RUN, PLACE = "desk", "place"


def work(root: str) -> None:
    """Be the worker: answer each request in the order of the journal, until one says that it was the last."""
    with freehold.open(root) as host, owned(host) as run:
        # The place is a file of the run, changed in the same transaction as the answer: whatever kills us, the two agree.
        place = run.files.read_text(PLACE) if run.files.exists(PLACE) else None
        print("working", flush=True)
        for event in run.follow(after=place):
            if event.name == "request":
                number = event.data["number"]
                answer = op.append("answer", {"to": event.id, "square": number * number})
                run.apply([answer, op.write_text(PLACE, event.id)], request_id=f"answer/{event.id}")
            elif event.name == "close":
                return


def owned(host: Host) -> Run:
    """Own the run as soon as that is possible: while no worker lives, a handle's call owns it for a moment."""
    until = monotonic() + PATIENCE_S
    while True:
        try:
            return host.ensure(RUN)
        except OwnedElsewhere:
            if monotonic() >= until:
                raise
        sleep(0.05)


def ask_all(root: str) -> None:
    """Be the asker: put questions, a few at once, each under a name of its own, and wait for their answers."""
    with freehold.open(root) as host, host.handle(RUN) as handle:

        def ask(number: int) -> None:
            asked = append(handle, "request", {"number": number}, f"request/{number}")
            answer = next(answers(handle, asked), None)
            assert answer is not None
            assert answer.data["square"] == number * number

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(ask, range(REQUESTS)))
        append(handle, "close", None, "close")


def append(handle: Handle, name: str, said: object, request_id: str) -> Event:
    """Append once, whoever owns the run by then, and whatever becomes of him meanwhile."""
    until = monotonic() + PATIENCE_S
    unknown: Error | None = None
    while True:
        try:
            with freehold.fail_after(2):  # an owner that hangs is asked again; the request id makes it one request
                return handle.append(name, said, request_id=request_id)
        except Error as error:
            if error.executed == "yes":
                raise
            if error.executed == "unknown":
                unknown = error  # from now on a `no` speaks of the later asks alone
            elif not error.retryable:
                raise unknown or error from None
            if monotonic() >= until:
                raise unknown or error from None
        sleep(0.05)


def answers(handle: Handle, asked: Event) -> Iterator[Event]:
    """Yield the answers to one request, as they come. There is one."""
    for event in handle.follow(after=asked, timeout=PATIENCE_S):
        if event.name == "answer" and event.data["to"] == asked.id:
            yield event


@contextmanager
def started(role: str, root: str) -> Iterator[subprocess.Popen[str]]:
    """Yield this program in another process, in a role; afterwards it is gone."""
    with subprocess.Popen([sys.executable, __file__, role, root], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - this file
        try:
            yield process
        finally:
            process.kill()


def show(root: str) -> bool:
    """Have a worker killed in the middle of its work, and return whether each request was answered exactly once."""
    with freehold.open(root) as host:  # closed again: for as long as a host that has owned a run is open, it keeps it for a while
        host.create(RUN).close()
    view = freehold.view(f"{root}/{RUN}.sqlite")
    with started("ask", root) as asker:
        with started("work", root) as worker:
            count = 0
            for event in view.follow(timeout=PATIENCE_S):
                count += event.name == "answer"
                if count == REQUESTS // 2:
                    break
            holder = view.owner
            print(f"{count} answers are there, and the worker owns the run: {holder is not None and holder.pid == worker.pid}")
            worker.kill()
            print(f"the worker was killed: {worker.wait()}")
        with started("work", root) as second:
            print(f"another one goes on where it was: {asker.wait(2 * PATIENCE_S) == second.wait(PATIENCE_S) == 0}")
    view.verify()
    asked = {event.id: event.data["number"] for event in view.history(name="request")}
    answered = Counter(event.data["to"] for event in view.history(name="answer"))
    print(f"{len(asked)} requests, {answered.total()} answers, to each of them one: {answered == Counter(asked.keys())}")
    return sorted(asked.values()) == list(range(REQUESTS)) and answered == Counter(asked.keys())


def main() -> int:
    """Play the role that the command line names, or show all of it in a folder that is gone afterwards."""
    match sys.argv[1:]:
        case ["work", root]:
            work(root)
        case ["ask", root]:
            ask_all(root)
        case _:
            with tempfile.TemporaryDirectory() as root:
                held = show(root)
            print("Everything held." if held else "Something did not hold.")
            return 0 if held else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
