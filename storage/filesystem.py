"""Which file systems a run may lie on: those whose locks and shared memory can be relied on."""

from __future__ import annotations

from freehold.schema.errors import Refused
from freehold.storage import platform

_UNRELIABLE = frozenset(
    "9p afs beegfs ceph cifs coda drvfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs prl_fs pvfs2 smb2 smb3 smbfs"
    " vboxsf virtiofs vmhgfs".split()
)


def is_unreliable(kind: str) -> bool:
    """Return whether *kind* is a network or FUSE file system; several machines or processes may see different locks there."""
    return kind in _UNRELIABLE or kind == "fuseblk" or kind.split(".", maxsplit=1)[0] == "fuse"


def check_filesystem(folder: str, *, any_filesystem: bool) -> None:
    """Raise Refused (network_filesystem) unless runs may be kept in *folder*, a canonical path, or the user insists."""
    kind = platform.filesystem_of(folder)
    if is_unreliable(kind) and not any_filesystem:
        raise Refused(
            f"{folder} is on a network or FUSE file system ({kind}), where locks cannot be relied on; nothing was opened or created. "
            "Say any_filesystem to use it all the same",
            code="network_filesystem",
            filesystem=kind,
        )
