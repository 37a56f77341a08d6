"""Asking several hosts the same thing, all at once and under one deadline: one that hangs does not hold the others up."""

from __future__ import annotations

import _thread
from collections.abc import Iterable
from typing import Any

from freehold.actors.deadline import deadline_in, exceeded, monotonic
from freehold.actors.remote import ask_host
from freehold.actors.reply import Reply
from freehold.schema.errors import Error, Unavailable
from freehold.schema.messages import Message

_GRACE_S = 1.0
"""Whoever asks looks at the deadline itself, and knows better than we why there is no answer."""


def ask_hosts(folder: str, names: Iterable[str], message: Message, timeout: float) -> dict[str, Any]:
    """Return what each of the hosts that listen as *names* in *folder* answers to a message that changes nothing, or its error."""
    assert not message.writes
    until = deadline_in(timeout)
    assert until is not None
    asked = {name: _begun(folder, name, message, until) for name in names}
    return {name: _heard(reply, until) for name, reply in asked.items()}


def _begun(folder: str, name: str, message: Message, until: float) -> Reply:
    """Have a thread of its own ask one host. It ends with the deadline, whoever still waits for it."""
    reply = Reply()

    def ask() -> None:
        try:
            reply.set(ask_host(folder, name, message, max(0.0, until - monotonic())))
        except BaseException as error:  # noqa: BLE001 - told to whoever waits, whatever it is
            reply.fail(error)

    try:
        _thread.start_new_thread(ask, ())
    except RuntimeError:
        reply.fail(Unavailable("there is no room for a thread that would ask it; nothing was changed"))
    return reply


def _heard(reply: Reply, until: float) -> Any:
    try:
        return reply.get(max(0.0, until - monotonic()) + _GRACE_S)
    except Error as error:
        return error
    except TimeoutError:
        return exceeded("no")
