"""What a disk promises about the steps of a record, and no more.

A file's bytes are durable after its own sync, a name after its folder's. Until then each write, cut and change of a name
may be there or not, whatever was done before or after it; a write may also be there in part, by sectors of 512 bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from freehold.storage.vfs.record import Change, Cut, Named, Record, Removed, Renamed, Step, Synced, SyncedFolder, Wrote

SECTOR = 512


@dataclass(slots=True)
class Content:
    """A file's durable bytes, and what was done to it since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Wrote | Cut] = field(default_factory=list)


class Durability:
    """The state of a disk between two steps of a record."""

    def __init__(self, record: Record) -> None:
        """Begin before the first step, when everything is durable."""
        self.files: dict[int, Content] = {}
        self.names: dict[str, int] = {}
        """The durable names. Folders have numbers too, and no content."""
        self.pending: list[Change] = []
        for name, content in record.before.items():
            self.names[name] = number = len(self.files)
            self.files[number] = Content(bytearray(content or b""))
        self.folders = {self.names[name] for name, content in record.before.items() if content is None}

    def take(self, step: Step) -> None:
        """Let *step* happen."""
        match step:
            case Wrote(file) | Cut(file):
                self._content(file).pending.append(step)
            case Synced(file):
                content = self._content(file)
                for done in content.pending:
                    apply(done, content.durable)
                content.pending.clear()
            case Named() | Renamed() | Removed():
                self.pending.append(step)
                if isinstance(step, Named) and step.is_folder:
                    self.folders.add(step.file)
            case SyncedFolder(folder):
                for change in [change for change in self.pending if folder_of(change.name) == folder]:
                    rename(change, self.names)
                    self.pending.remove(change)

    def _content(self, file: int) -> Content:
        return self.files.setdefault(file, Content())


def apply(step: Wrote | Cut, content: bytearray) -> None:
    """Do to *content* what a step did to its file."""
    end = step.size if isinstance(step, Cut) else step.offset
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if isinstance(step, Cut):
        del content[end:]
    else:
        content[end : end + len(step.content)] = step.content


def rename(change: Change, names: dict[str, int]) -> None:
    """Do to *names* what a change did to its folder's."""
    match change:
        case Named(name, file):
            names[name] = file
        case Renamed(name, new, file):
            names.pop(name, None)
            names[new] = file
        case Removed(name):
            names.pop(name, None)


def folder_of(name: str) -> str:
    """Return the folder in which *name* stands."""
    return os.path.dirname(name) or "."


def tears(write: Wrote) -> list[int]:
    """Return the lengths at which sectors of the disk divide what was written."""
    first = SECTOR - write.offset % SECTOR
    return list(range(first, len(write.content), SECTOR))
