"""What another user may not read or write is refused by name, and left as it is; what he may read, he reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from folder import snapshot
from runfile import forge_and_die, new_run
from ways import LOOKS, MARK, OWNS

from freehold.storage.path import RunPath

NOBODY = 65534
PROPS = f'{{"mark":"{MARK}"}}'
TRY = """
import json, os, sys, tempfile
sys.path.insert(0, sys.argv[1])
from ways import LOOKS, OWNS, told
import freehold
from freehold.storage.manifest import expected
with tempfile.TemporaryDirectory() as folder, freehold.open(folder) as host:
    host.create("a", props={"long": "x" * 9000}).close()  # loads now what the other user may not reach
    for call in LOOKS.values():
        call(host, "a")
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[3]))
with freehold.open(sys.argv[2]) as host:
    found = {name: told(lambda: call(host, "a")) for name, call in (LOOKS | OWNS).items()}
print(json.dumps(found))
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def root() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike a test's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "runs").mkdir()
        yield Path(folder) / "runs"
        (Path(folder) / "runs").chmod(0o755)


def as_nobody(root: Path) -> dict[str, str]:
    """Return what another user is told by each way, in a process of his own."""
    command = [sys.executable, "-c", TRY, str(Path(__file__).parents[1] / "kit"), str(root), str(NOBODY)]
    found: dict[str, str] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=50).stdout)
    return found


def dead_owner(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")


def all_modes(path: RunPath, file: int, folder: int) -> None:
    for found in Path(path.folder).iterdir():
        found.chmod(file)
    Path(path.folder).chmod(folder)


@pytest.mark.parametrize("leave", [lambda path: None, dead_owner], ids=["closed", "dead"])
@pytest.mark.parametrize(
    ("file", "folder", "look", "own"),
    [
        (0o600, 0o755, "no_permission", "no_permission"),
        (0o644, 0o700, "no_permission", "no_permission"),
        (0o444, 0o555, "ok", "read_only"),
        (0o444, 0o777, "ok", "read_only"),
        (0o666, 0o555, "ok", "read_only"),
    ],
    ids=["a private file", "a private folder", "nothing to write", "a file to read", "a folder to read"],
)
def test_another_user_is_told_what_he_may_not_and_changes_nothing(
    root: Path, leave: Callable[[RunPath], None], file: int, folder: int, look: str, own: str
) -> None:
    path = new_run(root, "a", PROPS)
    leave(path)
    all_modes(path, file, folder)
    before = snapshot(root)

    found = as_nobody(root)

    assert {way: found[way] for way in LOOKS} == dict.fromkeys(LOOKS, look)
    unseen = folder == 0o700
    assert {way: found[way] for way in OWNS} == {"open": own, "ensure": own, "create": "no_permission" if unseen else "run_exists"}
    assert snapshot(root) == before


@pytest.mark.parametrize(("mode", "look", "own"), [(0o444, "ok", "read_only"), (0o600, "no_permission", "no_permission")])
def test_another_user_is_told_what_he_may_not_of_a_wal_and_changes_nothing(root: Path, mode: int, look: str, own: str) -> None:
    path = new_run(root, "a", PROPS)
    dead_owner(path)
    all_modes(path, 0o666, 0o777)
    Path(path.sibling("-wal")).chmod(mode)
    before = snapshot(root)

    found = as_nobody(root)

    assert found == dict.fromkeys(LOOKS, look) | {"open": own, "ensure": own, "create": "run_exists"}
    assert snapshot(root) == before
