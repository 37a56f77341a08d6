"""The socket of a host as a name in its folder: made, found, and removed when nobody listens there any more.

It never has a name before somebody listens: a name that refuses a connection is a dead host's. Only its user may connect.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from contextlib import suppress

from freehold.schema.ids import is_socket_name
from freehold.storage import platform
from freehold.storage.platform import Inode

_BACKLOG = 128
_TRIES_MAX = 3
_NEW = re.compile(r"\.host-[0-9a-f]{16}\.new")


class Listening:
    """A listening socket with a name."""

    def __init__(self, folder: str, name: str, taken: socket.socket, inode: Inode) -> None:
        self.folder = folder
        self.name = name
        self.socket = taken
        self._inode = inode

    def refuse(self) -> None:
        """Take its name away, and let nobody connect any more; who waits in `accept` is woken."""
        with suppress(OSError):  # the folder may be gone
            _remove(self.folder, self.name, self._inode)
        with suppress(OSError):  # it is closed already
            self.socket.shutdown(socket.SHUT_RDWR)


def listen(folder: str, name: str) -> Listening:
    """Listen in *folder* under *name*, in place of what has that name there. Raises OSError."""
    temporary = name.removesuffix(".sock") + ".new"
    tries = 0
    while True:
        tries += 1
        try:
            return _listen(folder, name, temporary)
        except FileNotFoundError:
            # Before it listens it looks like a dead one: somebody has swept it.
            if tries == _TRIES_MAX or not os.path.isdir(folder):
                raise


def _listen(folder: str, name: str, temporary: str) -> Listening:
    made = socket.socket(socket.AF_UNIX)
    try:
        folder_fd = platform.open_path(folder)
        try:
            with suppress(FileNotFoundError):  # an earlier try of ours
                os.unlink(temporary, dir_fd=folder_fd)
            os.fchmod(made.fileno(), 0o600)  # before it has a name: nobody else can connect at any moment
            made.bind(platform.address_in(folder_fd, temporary))
            try:
                made.listen(_BACKLOG)
                inode = platform.inode_of(os.stat(temporary, dir_fd=folder_fd, follow_symlinks=False))
                os.rename(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
            except BaseException:
                with suppress(OSError):  # what has failed is told, not this
                    os.unlink(temporary, dir_fd=folder_fd)
                raise
        finally:
            os.close(folder_fd)
    except BaseException:
        made.close()
        raise
    return Listening(folder, name, made, inode)


def connect(folder: str, name: str) -> socket.socket:
    """Return a connection to the socket *name* in *folder*, without waiting.

    Raises OSError: FileNotFoundError and ConnectionRefusedError where nobody listens, BlockingIOError where too many wait
    already, PermissionError where another user does.
    """
    folder_fd = platform.open_path(folder)
    try:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.setblocking(False)
            made.connect(platform.address_in(folder_fd, name))
            if platform.peer_uid(made) != os.geteuid():
                raise PermissionError("another user listens there")
        except BaseException:
            made.close()
            raise
    finally:
        os.close(folder_fd)
    return made


def sweep(folder: str) -> list[str]:
    """Remove the names in *folder* on which nobody listens any more, and return them."""
    return [name for name in os.listdir(folder) if (is_socket_name(name) or _NEW.fullmatch(name)) and _remove_dead(folder, name)]


def _remove_dead(folder: str, name: str) -> bool:
    try:
        found = os.lstat(os.path.join(folder, name))
        if stat.S_ISSOCK(found.st_mode):  # a file that is none refuses too
            connect(folder, name).close()
    except ConnectionRefusedError:
        return _remove(folder, name, platform.inode_of(found))
    except OSError:
        return False  # it is gone, busy, or another user's
    return False


def _remove(folder: str, name: str, inode: Inode) -> bool:
    """Remove *name* if it is still that very socket."""
    file = os.path.join(folder, name)
    if platform.find_inode(file) != inode:
        return False
    with suppress(FileNotFoundError):  # another sweeper was quicker
        os.unlink(file)
    return True
