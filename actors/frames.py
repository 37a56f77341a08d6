"""Frames on their way through a socket, each end of the wait bounded: whoever is slow or silent holds nobody for long."""

from __future__ import annotations

import socket

from freehold.actors.deadline import monotonic
from freehold.schema.wire import HEAD_BYTES, body_length

_PIECE_BYTES = 256 * 1024
_WAIT_S_MAX = 1_000_000.0
"""A socket cannot be told to wait for ever and a day."""


class Closed(Exception):
    """The other side has closed the connection."""


def send(to: socket.socket, frame: bytes, until: float) -> None:
    """Send a whole frame. Raises TimeoutError at *until* (monotonic), Closed; then some of it may have gone out, never all."""
    view = memoryview(frame)
    try:
        while view:
            to.settimeout(_left(until))
            view = view[to.send(view, socket.MSG_NOSIGNAL) :]
    except TimeoutError:
        raise
    except OSError:
        raise Closed from None


def receive(of: socket.socket, most: int, first: float, whole: float | None = None) -> bytes:
    """Return the body of the next frame, which begins by *first* (monotonic) and is there *whole* seconds later, or also by *first*.

    Raises TimeoutError, Closed, Refused (frame_too_large) before anything of the body is read.
    """
    head = _some(of, HEAD_BYTES, first)
    until = first if whole is None else monotonic() + whole
    head += _all(of, HEAD_BYTES - len(head), until)
    return _all(of, body_length(head, most), until)


def _all(of: socket.socket, count: int, until: float) -> bytes:
    got = bytearray()
    while len(got) < count:
        got += _some(of, min(count - len(got), _PIECE_BYTES), until)
    return bytes(got)


def _some(of: socket.socket, most: int, until: float) -> bytes:
    try:
        of.settimeout(_left(until))
        piece = of.recv(most)
    except TimeoutError:
        raise
    except OSError:
        raise Closed from None
    if not piece:
        raise Closed
    return piece


def _left(until: float) -> float:
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, _WAIT_S_MAX)
