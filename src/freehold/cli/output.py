"""Writing: data to standard output, everything else to standard error.

Never a control character of somebody's text, except in the content of a file that was asked for.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import select
import sys
from typing import Any, TextIO

import click

from freehold.cli.faults import HINTS
from freehold.errors import Unavailable

_CLOSED: set[str] = set()
"""The streams that were closed when the program began."""
_MAYBE_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def plain(text: str) -> str:
    r"""Return *text* with everything that does not print as itself (escapes, line ends, directions) written as \uXXXX.

    Of a JSON text the result says the same.
    """
    return _MAYBE_UNPRINTABLE.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def say(text: str) -> None:
    """Write *text* to standard output as it is. Raises BrokenPipeError; Unavailable if it cannot be written."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(error) from None


def say_bytes(data: bytes) -> None:
    """Write *data* to standard output unchanged. Raises as `say`."""
    left = memoryview(data)
    try:
        while left:  # an unbuffered one takes what it can
            left = left[sys.stdout.buffer.write(left) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(error) from None


def coloured(text: str, colour: str) -> str:
    """Return *text* in a colour, if standard output is a terminal whose user likes colours."""
    likes = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return click.style(text, fg=colour) if likes else text


def say_json(document: Any) -> None:
    """Write a whole JSON document. Raises as `say`."""
    say(json_text(document) + "\n")


def json_text(document: Any) -> str:
    """Return *document* as JSON in ASCII, which every terminal and encoding can take."""
    return json.dumps(document)


def flush() -> None:
    """Let standard output reach its reader. Raises as `say`."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(error) from None


def note(text: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(plain(text) + "\n")


def complain(record: dict[str, Any], about: str | None = None) -> None:
    """Tell people of an error: one line, and a hint where there is one."""
    # What the system says of a file, everybody knows as it stands.
    code = "" if "errno" in record["details"] else f" [{record['code']}]"
    note(f"freehold: {about + ': ' if about else ''}{record['message']}{code}")
    if (hint := HINTS.get(record["code"])) is not None:
        note(f"  hint: {hint}")


def prepare_streams() -> None:
    """Make the three streams usable whatever they are: closed ones lead nowhere, and no character is too strange for one.

    Nothing can be read from a closed standard input: it is not an empty one.
    """
    _CLOSED.clear()
    # In this order, so that each takes the descriptor that was closed, and no run file ever gets it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_WRONLY if name == "stdin" else os.O_RDWR
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))
            _CLOSED.add(name)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def need_output() -> None:
    """Raise Unavailable where standard output is closed: for a command that has nothing else to do than to write there."""
    if "stdout" in _CLOSED:
        raise Unavailable(f"the output could not be written ({os.strerror(errno.EBADF)})", executed="no")


def check_reader() -> None:
    """Raise BrokenPipeError if whoever reads standard output has gone: for a command that may have nothing to write for long."""
    if _is_output(0):
        raise BrokenPipeError


def takes_a_line() -> bool:
    """Return whether a short line can be written without waiting for a reader. An error is written at once, too."""
    return _is_output(select.POLLOUT) is not False


def _is_output(ready_for: int) -> bool | None:
    """Return whether standard output is ready for this, or has nobody at its other end; None where it is no file of the system's."""
    look = select.poll()
    try:
        look.register(sys.stdout, ready_for)
    except io.UnsupportedOperation:
        return None
    return bool(look.poll(0))


def drop(stream: TextIO) -> None:
    """Let everything that *stream* still holds, and all that follows, lead nowhere."""
    try:
        target = stream.fileno()
    except io.UnsupportedOperation:
        return  # no file of the system's: nothing can be waiting on the other side
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, target)
    os.close(nowhere)


def _unwritten(error: OSError) -> Unavailable:
    drop(sys.stdout)  # else the interpreter tries again when it ends, and fails again
    return Unavailable(f"the output could not be written ({os.strerror(error.errno or 0)})", executed="unknown")
