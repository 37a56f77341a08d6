"""The record of a scenario, from which every state can be drawn that its folder may be in after a power loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from freehold.host import Host, StrPath, open_on
from freehold.storage.vfs import image
from freehold.storage.vfs.image import CrashImage
from freehold.storage.vfs.recorder import Recorder


class Recording:
    """Notes what the hosts opened through it do to the files below *folder*, until its block ends.

    The folder is made if it is missing; what stands there before counts as durable. Everything is really done, so the
    scenario runs as it would without.
    """

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._recorder = Recorder(folder)

    def host(self, root: StrPath | None = None, **options: Any) -> Host:
        """Open a host on *root*, a folder below or at the recorded one, with the options of `freehold.open`."""
        return open_on(self._recorder, self.folder if root is None else root, **options)

    def mark(self, fact: object) -> None:
        """Note *fact* between what was done and what will be: an image of a later moment has it among its `marks`.

        Mark what was acknowledged: it must be found in every image that knows of it.
        """
        self._recorder.mark(fact)

    def close(self) -> None:
        """End the recording, after its hosts were closed. Closing twice is fine."""
        self._recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def crash_images(recording: Recording, *, seed: int, limit: int | None = None) -> Iterator[CrashImage]:
    """Yield different states of the recorded folder after a power loss: *limit* of them, or one of each kind for each step.

    After each step that was recorded: everything done so far is there; only what is durable; a random beginning of what is
    not; random parts of it; the same with one write torn at a sector. Bytes are durable after their file's sync, names
    after their folder's. The same recording, seed and limit yield the same images.
    """
    return image.crash_images(recording._recorder.record, seed=seed, limit=limit)  # noqa: SLF001 - a part of this file


def crash_image(recording: Recording, seed: int, index: int) -> CrashImage:
    """Return the one image that *seed* and *index* mean, to look at a failure again."""
    return image.crash_image(recording._recorder.record, seed, index)  # noqa: SLF001 - a part of this file
