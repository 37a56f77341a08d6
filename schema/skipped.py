"""What a folder holds and a root cannot: every path that an import did not take as it is, with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

Parts = tuple[str, ...]
"""The names from the top to an entry. Bytes that are not UTF-8 stand in it as lone surrogates, as Python decodes the names of files."""


class Reason(StrEnum):
    """Why an entry of a folder was not taken, or not taken as it is."""

    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"
    NO_PERMISSION = "no_permission"
    NOT_UTF8 = "not_utf8"
    UNPORTABLE = "unportable"
    NAME_TOO_LONG = "name_too_long"
    PATH_TOO_LONG = "path_too_long"
    TOO_DEEP = "too_deep"
    COLLISION = "collision"
    CHANGED_WHILE_READING = "changed_while_reading"
    VANISHED = "vanished"
    LINK_TARGET = "link_target"
    IN_USE = "in_use"
    RUNS_FOLDER = "runs_folder"
    UNFINISHED_CHECKOUT = "unfinished_checkout"
    SPECIAL_BITS = "special_bits"
    HARD_LINK = "hard_link"
    SECRET = "secret"


HELD = frozenset({Reason.SPECIAL_BITS, Reason.HARD_LINK})
"""The entry itself is held: without setuid, setgid and sticky bits, or apart from its other names."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """One path, why it was not taken as it is, and what more there is to say: the rule, or the name of its twin or of a secret."""

    parts: Parts
    reason: Reason
    detail: str = ""

    @property
    def path(self) -> str:
        r"""The path as it can be shown and stored: a byte that is not UTF-8 is written as `\xff`."""
        return shown(self.parts)

    @property
    def held(self) -> bool:
        """Whether the entry was taken all the same, only not with everything that it had."""
        return self.reason in HELD


@dataclass(slots=True)
class Report:
    """What an import left behind. It is complete only if nothing was skipped; what it was told to ignore is no loss."""

    skipped: list[Skipped] = field(default_factory=list)
    ignored: list[Parts] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the root is the folder, but for what was ignored."""
        return not self.skipped

    def left_out(self) -> frozenset[Parts]:
        """Return the paths that are in the folder and not in the root. A checkout into the folder leaves them alone."""
        return frozenset(self.ignored) | {skipped.parts for skipped in self.skipped if not skipped.held}


def shown(parts: Parts) -> str:
    r"""Return a path as it can be shown and stored: a byte that is not UTF-8 is written as `\xff`."""
    return "/".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
