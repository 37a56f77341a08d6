"""A socket has its name only while somebody listens, whoever may connect is its user, and dead names are swept."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from folder import descriptors

from freehold.schema.ids import is_socket_name, socket_name
from freehold.storage import platform
from freehold.storage.sockets import Listening, connect, listen, sweep

NAMES = [socket_name(bytes(7) + bytes((number,))) for number in range(8)]


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(folder: Path, name: str, undo: ExitStack) -> Listening:
    found = listen(str(folder), name)
    undo.callback(found.socket.close)
    return found


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def die(found: Listening) -> None:
    """As a process ends that is killed: the name stays."""
    found.socket.close()


def test_a_socket_has_its_name_and_whoever_connects_is_heard(tmp_path: Path, undo: ExitStack) -> None:
    found = listening(tmp_path, NAMES[0], undo)
    assert names(tmp_path) == [NAMES[0]]
    with connect(str(tmp_path), NAMES[0]) as caller:
        heard, _ = found.socket.accept()
        with heard:
            caller.sendall(b"x")
            assert heard.recv(1) == b"x"


def test_nobody_but_its_user_may_connect_from_the_first_moment(tmp_path: Path, undo: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    really = os.rename

    def rename(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        modes.append(stat.S_IMODE((tmp_path / old).lstat().st_mode))
        really(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    before = os.umask(0)
    undo.callback(os.umask, before)
    monkeypatch.setattr(os, "rename", rename)
    listening(tmp_path, NAMES[0], undo)
    assert modes == [0o600]
    assert stat.S_IMODE((tmp_path / NAMES[0]).lstat().st_mode) == 0o600


def test_it_listens_before_it_has_its_name(tmp_path: Path, undo: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.rename

    def rename(old: str, new: str, **folders: int) -> None:
        assert not is_socket_name(old)
        connect(str(tmp_path), old).close()
        really(old, new, **folders)

    monkeypatch.setattr(os, "rename", rename)
    listening(tmp_path, NAMES[0], undo)
    assert names(tmp_path) == [NAMES[0]]


def test_a_folder_of_any_length_has_its_socket(tmp_path: Path, undo: ExitStack) -> None:
    folder = tmp_path / ("d" * 200) / ("e" * 100)
    folder.mkdir(parents=True)
    found = listening(folder, NAMES[0], undo)
    connect(str(folder), NAMES[0]).close()
    found.refuse()
    assert names(folder) == []


def test_whoever_refuses_has_no_name_any_more(tmp_path: Path, undo: ExitStack) -> None:
    found = listening(tmp_path, NAMES[0], undo)
    found.refuse()
    assert names(tmp_path) == []
    with pytest.raises(OSError, match="Invalid"):
        found.socket.accept()
    found.socket.close()
    found.refuse()


def test_a_name_that_is_somebody_elses_by_now_is_left(tmp_path: Path, undo: ExitStack) -> None:
    one = listening(tmp_path, NAMES[0], undo)
    two = listening(tmp_path, NAMES[0], undo)
    one.refuse()
    connect(str(tmp_path), NAMES[0]).close()
    two.refuse()
    assert names(tmp_path) == []


def test_dead_names_are_swept_and_living_ones_are_not(tmp_path: Path, undo: ExitStack) -> None:
    dead = [listening(tmp_path, name, undo) for name in NAMES[:3]]
    living = listening(tmp_path, NAMES[3], undo)
    (tmp_path / NAMES[2]).rename(tmp_path / ".host-0123456789abcdef.new")
    others = [".host-x.sock", ".host-0123456789abcdef.sock.bak", "a.sqlite", "x.sock"]
    for other in others:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(tmp_path / other))
    (tmp_path / NAMES[4]).touch()
    (tmp_path / NAMES[5]).symlink_to("a.sqlite")
    for each in dead:
        die(each)

    swept = sweep(str(tmp_path))

    assert sorted(swept) == sorted([*NAMES[:2], ".host-0123456789abcdef.new"])
    assert names(tmp_path) == sorted([*NAMES[3:6], *others])
    connect(str(tmp_path), NAMES[3]).close()
    living.refuse()


def test_a_host_that_was_swept_before_it_listened_tries_again(tmp_path: Path, undo: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    really = socket.socket.listen
    swept: list[list[str]] = []

    def late(self: socket.socket, backlog: int) -> None:
        if not swept:
            swept.append(sweep(str(tmp_path)))
        really(self, backlog)

    monkeypatch.setattr(socket.socket, "listen", late)
    listening(tmp_path, NAMES[0], undo)
    assert len(swept) == 1
    assert names(tmp_path) == [NAMES[0]]


@pytest.mark.parametrize("number", [1, 5])
def test_where_no_socket_can_be_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    calls = ["bind", "listen"]

    def fails(*_: object) -> None:
        raise PermissionError(number, "no")

    before = descriptors()
    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(socket.socket, call, fails)
            with pytest.raises(PermissionError):
                listen(str(tmp_path), NAMES[0])
        assert names(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        listen(str(tmp_path / "nowhere"), NAMES[0])
    assert descriptors() == before


def test_another_users_socket_is_not_spoken_to(tmp_path: Path, undo: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    listening(tmp_path, NAMES[0], undo)
    monkeypatch.setattr(platform, "peer_uid", lambda _end: os.geteuid() + 1)
    with pytest.raises(PermissionError):
        connect(str(tmp_path), NAMES[0])
    assert sweep(str(tmp_path)) == []


def test_whoever_connects_is_known_to_the_kernel(tmp_path: Path, undo: ExitStack) -> None:
    found = listening(tmp_path, NAMES[0], undo)
    with connect(str(tmp_path), NAMES[0]) as caller:
        heard, _ = found.socket.accept()
        assert platform.peer_uid(heard) == platform.peer_uid(caller) == os.geteuid()
        assert not platform.has_hung_up(caller)
        heard.sendall(b"x")
        heard.close()
        assert platform.has_hung_up(caller)  # although there is something to read


def test_the_name_of_a_socket_leads_nowhere_else() -> None:
    assert is_socket_name(socket_name(b"\x00\xff" * 4))
    for name in ("", "../" + NAMES[0], NAMES[0] + "\x00", NAMES[0] + "\n", NAMES[0].upper(), "x" + NAMES[0], NAMES[0][:-5], None, b"x"):
        assert not is_socket_name(name)
