"""What Freehold is tested with, for tests of whoever builds on it.

*Power loss*: let a scenario run while a `Recording` notes every write, sync and change of a name; then look at each state
that the disk may hold after the power went.

>>> import freehold, tempfile
>>> from freehold.testing import Recording, crash_images
>>> with tempfile.TemporaryDirectory() as folder, Recording(folder) as recording:
...     with recording.host() as host, host.create("r") as run:
...         for number in range(3):
...             event = run.append("counted", number)
...             recording.mark(event.seq)
>>> for image in crash_images(recording, seed=1, limit=20):
...     with tempfile.TemporaryDirectory() as folder, freehold.open(image.restore(folder)) as host:
...         there = [event.seq for event in host.view("r").history()]
...         assert set(image.marks) <= set(there), image
"""

from freehold.storage.vfs.image import CrashImage
from freehold.testing.recording import Recording, crash_image, crash_images

__all__ = ["CrashImage", "Recording", "crash_image", "crash_images"]
