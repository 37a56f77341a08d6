"""What tests of turns share: an owner that is kept busy, senders who have come, and what the owner has in hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

from freehold import Error, Host, Run
from freehold.actors.registrar import ReadHosts
from freehold.actors.run import RunActor
from freehold.actors.tree import Node
from freehold.storage.store import Store

PATIENCE_S = 30.0


def until(come: Callable[[], object]) -> None:
    """Wait until *come* returns something true."""
    for _ in range(int(PATIENCE_S / 0.001)):
        if come():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it has not come")


def run_nodes(host: Host) -> list[Node]:
    """Return the pictures of a host's runs, without those of what serves it itself."""
    return [node for node in host.tree().children if not node.name.startswith(".")]


def settle(host: Host) -> None:
    """Wait until the host has said in the host file what it says there."""
    host._runs.start_registrar().ask(ReadHosts())


@contextmanager
def senders(number: int = 16) -> Iterator[Callable[..., Future[Any]]]:
    """Yield a function that runs a call in one of *number* threads."""
    with ThreadPoolExecutor(number, thread_name_prefix="sender") as pool:
        yield pool.submit


class Busy:
    """Keeps a run's owner inside one turn until the block ends or `release` is called."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._inside = threading.Event()
        self._go = threading.Event()
        self._thread = threading.Thread(target=self._hold)
        self._error: Error | None = None

    def _hold(self) -> None:
        def work(_tx: object) -> None:
            self._inside.set()
            assert self._go.wait(PATIENCE_S)

        try:
            self._run.transact(work)
        except Error as error:
            self._error = error

    def release(self) -> None:
        """Let the turn end."""
        self._go.set()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._inside.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def outcome(self) -> Error | None:
        """Return what the turn was answered with once it was, None if it went well."""
        self._thread.join(PATIENCE_S)
        return self._error


def waiting(run: Run, number: int) -> None:
    """Wait until *number* messages wait for the run's owner."""
    until(lambda: len(run._ref.mailbox) >= number)


def owner(host: Host, run: Run) -> RunActor:
    """Return the present incarnation of the run's owner."""
    child = next(child for child in host._runs.actor.children.values() if child.ref is run._ref)
    assert child.cell is not None
    actor = child.cell.actor
    assert isinstance(actor, RunActor)
    return actor


def store(host: Host, run: Run) -> Store:
    """Return the store of the run's owner; only to be touched while the owner is idle, or inside its turn."""
    return owner(host, run)._store


def txn(run: Run) -> int:
    """Return the number of the run's last write transaction."""
    return run.info.txn


def names(run: Any) -> list[str]:
    """Return the names of the notes in the journal."""
    return [event.name for event in run.history() if event.kind == "note"]
