"""Ctrl-C while a document is written: the first comes between two pieces, the second at once, and afterwards all is as before."""

from __future__ import annotations

import signal

import pytest

from freehold.cli.interrupt import postponed


def test_the_first_ctrl_c_is_told_when_asked_and_the_second_interrupts_at_once() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with postponed() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL])
def test_whoever_has_taken_ctrl_c_otherwise_keeps_it(before: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, before)
    with postponed() as interrupted:
        assert signal.getsignal(signal.SIGINT) is before
        assert not interrupted()

    assert signal.getsignal(signal.SIGINT) is before
