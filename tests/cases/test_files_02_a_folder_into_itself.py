"""A folder is never moved beneath itself: EINVAL, whatever stands on the way, and the root is unchanged."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from published import publishes

import freehold


@pytest.mark.parametrize("to", ["m1/s/t", "m1/s", "m1/t", "link/t"])
def test_a_folder_is_not_moved_beneath_itself(tmp_path: Path, to: str) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        with run.publish("start") as files:
            files.mkdir("m1/s", parents=True)
            files.symlink("link", "m1/s")
        before = run.files.root

        with pytest.raises(OSError, match="m1") as caught:
            run.publish("lost", lambda files: files.rename("m1", to))

        assert (caught.value.errno, run.files.root) == (errno.EINVAL, before)
        assert publishes(run)[-1] == ("lost", {"failed": "OSError", "errno": "EINVAL", "path": "m1"})
