"""Where a run may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.schema.errors import Refused
from freehold.storage import platform
from freehold.storage.filesystem import check_filesystem, is_unreliable


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.sshfs", "fuseblk", "ceph", "glusterfs", "virtiofs"])
def test_network_and_fuse_file_systems_are_unreliable(kind: str) -> None:
    assert is_unreliable(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "zfs", "overlay", "f2fs", "fusectl", ""])
def test_local_ones_are_not(kind: str) -> None:
    assert not is_unreliable(kind)


def test_a_folder_on_one_is_refused_unless_the_user_insists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_filesystem(str(tmp_path), any_filesystem=False)
    monkeypatch.setattr(platform, "filesystem_of", lambda _: "nfs4")
    check_filesystem(str(tmp_path), any_filesystem=True)
    with pytest.raises(Refused) as raised:
        check_filesystem(str(tmp_path), any_filesystem=False)

    assert raised.value.code == "network_filesystem"
    assert raised.value.details == {"filesystem": "nfs4"}
