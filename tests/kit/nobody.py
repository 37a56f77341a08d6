"""Code that runs as a user who owns nothing: root sees through permissions, and so a test as root would prove nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from trees import *
from freehold.schema.skipped import Reason
from freehold.storage.checkout import checkout
from freehold.storage.temporary import temporary
import pathspec, tempfile, unicodedata  # what he may not be able to load
top, shelf = Path(sys.argv[2]), Shelf()
def whole_way():
    import freehold
    with tempfile.TemporaryDirectory() as folder, freehold.open(folder) as host, host.create("r") as run:
        run.publish("x", lambda files: files.write_bytes("x", bytes(9000)))
        run.checkout(folder + "/out")
        run.import_tree(folder + "/out", ignore=["y"])
        run.checkout(folder + "/out", replace="always", ignore=["z"])
if sys.argv[3] == "run":
    whole_way()  # loads what he may not reach
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""

needs_another_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextmanager
def nobodys_folder() -> Iterator[Path]:
    """Yield a folder that the other user can reach and owns."""
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        top = Path(outer) / "top"
        top.mkdir()
        if os.geteuid() == 0:
            os.chown(top, NOBODY, NOBODY)
        yield top


def as_nobody(top: Path, program: str, *, needs: str = "folders") -> str:
    """Run *program* as somebody who is not root, with `top`, `shelf` and what is in kit/trees.py; return what it prints.

    It can use whole runs only if it *needs* "run", since somebody else may not be able to load what they need.
    """
    command = [sys.executable, "-c", _PROGRAM + program, str(Path(__file__).parent), str(top), needs]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=50, text=True)
    return done.stdout
