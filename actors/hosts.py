"""The hosts of this process: one a root, and all closed before the interpreter ends.

The threads of a host are daemons, so that a stuck one cannot keep the interpreter; atexit runs while they still do.
"""

from __future__ import annotations

import atexit
import logging
from contextvars import Context
from typing import Protocol

from freehold.actors.deadline import give_up_blocks
from freehold.schema.errors import Error, HostOpen
from freehold.storage import forks

log = logging.getLogger("freehold.actors")


class _Closes(Protocol):
    @property
    def is_left(self) -> bool: ...
    def leave(self) -> None: ...
    def close(self) -> None: ...


class Hosts:
    """Open hosts by the canonical path of their root."""

    def __init__(self) -> None:
        self._open: dict[str, _Closes] = {}

    def enter(self, root: str, host: _Closes) -> None:
        """Take the place of *root*. Raises HostOpen when it is taken."""
        if self._open.setdefault(root, host) is not host:
            raise HostOpen(f"this process has a host on {root} already; share it, or close it first. Nothing was opened")

    def leave(self, root: str, host: _Closes) -> None:
        """Give the place of *root* back, if it is *host*'s."""
        if self._open.get(root) is host:
            del self._open[root]

    def close_all(self) -> None:
        """Close what was forgotten; a host that does not stop is named in the log, and the interpreter ends all the same.

        One whose end was interrupted is not waited for, nor is any other once this is: what was acknowledged is safe.
        """
        give_up_blocks()
        for root, host in list(self._open.items()):
            if host.is_left:
                continue
            log.warning("the host on %s was not closed; closing it now", root)
            try:
                Context().run(host.close)  # no block in which the program has ended holds it up, and no deadline
            except KeyboardInterrupt:
                for each in self._open.values():
                    each.leave()
                log.warning("the host on %s is left as it is; what was acknowledged is safe", root)
                return
            except Error as error:
                log.error("%s: %s", root, error)  # noqa: TRY400 - our errors say it all in one line
            except Exception as error:  # noqa: BLE001 - one that fails must not keep the others open
                log.error("%s: %s", root, type(error).__name__)  # noqa: TRY400 - its text could quote a value

    def forked(self) -> None:
        """Begin anew in a forked child: it may open hosts of its own."""
        self._open = {}


HOSTS = Hosts()
forks.watch(HOSTS)
atexit.register(HOSTS.close_all)
