"""Ctrl-C and SIGTERM while a document is written: the first between two pieces, the second at once, and then all is as before."""

from __future__ import annotations

import signal

import pytest

from freehold.cli.interrupt import Terminated, heed_termination, postponed, terminate


@pytest.fixture(autouse=True)
def _heeded() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, terminate)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_first_ctrl_c_is_told_when_asked_and_the_second_interrupts_at_once(first: signal.Signals, second: signal.Signals) -> None:
    with postponed() as interrupted:
        assert interrupted() is None
        signal.raise_signal(first)
        assert type(interrupted()) is (Terminated if first == signal.SIGTERM else KeyboardInterrupt)
        with pytest.raises(Terminated if second == signal.SIGTERM else KeyboardInterrupt):
            signal.raise_signal(second)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is terminate


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL])
def test_whoever_has_taken_ctrl_c_otherwise_keeps_it(before: signal.Handlers, number: signal.Signals) -> None:
    signal.signal(number, before)
    with postponed() as interrupted:
        assert signal.getsignal(number) is before
        assert interrupted() is None

    assert signal.getsignal(number) is before


def test_a_sigterm_that_somebody_else_has_taken_is_left_to_them() -> None:
    for before, after in ((signal.SIG_DFL, terminate), (signal.SIG_IGN, signal.SIG_IGN)):
        signal.signal(signal.SIGTERM, before)
        heed_termination()
        assert signal.getsignal(signal.SIGTERM) is after
