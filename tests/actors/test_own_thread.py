"""What belongs to a thread knows whether it is used there."""

from __future__ import annotations

import threading

from freehold.actors.own_thread import OwnThread


def test_it_is_here_in_the_thread_that_made_it_and_in_no_other() -> None:
    own = OwnThread()
    elsewhere: list[bool] = []
    thread = threading.Thread(target=lambda: elsewhere.append(own.is_here))
    thread.start()
    thread.join()

    assert own.is_here
    assert elsewhere == [False]
