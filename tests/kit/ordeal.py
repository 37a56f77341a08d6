"""A scenario on a disk that fails: what was told must be true of the file afterwards, and nothing may be left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from driver import Driver
from folder import descriptors
from scenario import path_in, play, prepare
from verdict import Violation, judge, live_again

from freehold.schema.errors import Error
from freehold.storage.faults import Ended, Poisoned
from freehold.storage.registry import REGISTRY
from freehold.storage.vfs.faults import Faulty, Kind


class Fault(NamedTuple):
    """How a disk fails, and at which call."""

    kind: Kind
    sticky: bool
    nth: int


KINDS: tuple[tuple[Kind, bool], ...] = (("eio", False), ("eio", True), ("full", False), ("full", True), ("short", False))


def faults(name: str, base: Path, step: int, part: int = 0) -> Iterator[Fault]:
    """Yield every *step*th fault of each kind that the scenario *name* can meet; all *step* parts together are all faults."""
    for number, (kind, sticky) in enumerate(KINDS):
        with Faulty() as disk:
            disk.arm(kind, 0)
            folder = base / str(number)
            play(name, Driver(path_in(folder), disk, life=1), prepare(name, folder))
            for nth in range(1 + (number + part) % step, disk.calls + 1, step):
                yield Fault(kind, sticky, nth)


def endure(name: str, base: Path, fault: Fault, calls: Iterable[str] | None = None) -> list[str]:
    """Play the scenario with the fault, if any of *calls* meets it; return the calls that failed. Raises Violation."""
    known = prepare(name, base)
    before = descriptors(), len(REGISTRY._places)
    with Faulty() as disk:
        disk.arm(fault.kind, fault.nth, sticky=fault.sticky, calls=calls)
        driver = Driver(path_in(base), disk, life=1)
        try:
            _as_told(lambda: play(name, driver, known))
            if driver.doubt is not None:
                _as_told(driver.own)  # a broken disk stays broken for the next incarnation too
                driver.crash()
            disk.heal()
            found = judge(driver.path, driver.book)
            if driver.doubt is not None:
                driver.own()
                driver.close()
                found = judge(driver.path, driver.book)
        finally:
            driver.crash()
        live_again(driver.path, found)
        if (descriptors(), len(REGISTRY._places)) != before:
            raise Violation("a descriptor or a place in the registry was left behind")
        return disk.struck


def _as_told(call: Callable[[], object]) -> None:
    """Let a call fail in the ways in which an owner may be told of it; anything else is a violation."""
    try:
        call()
    except (Error, Ended, Poisoned):
        return
    except AssertionError:
        raise
    except Exception as error:
        raise Violation(f"a {type(error).__name__} came through") from error
