"""A scan tells everything that is in a folder: what can be held as entries in order, all else in its report."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from folder import descriptors, snapshot
from nobody import as_nobody, needs_another_user, nobodys_folder
from trees import Shelf, taken

from freehold.schema.errors import Unavailable
from freehold.schema.limits import CHUNK_BYTES, PATH_BYTES_MAX, PATH_DEPTH_MAX
from freehold.schema.skipped import Reason
from freehold.storage import platform
from freehold.storage.folders import open_folder, open_top
from freehold.storage.registry import REGISTRY
from freehold.storage.scan import scan


@pytest.fixture(autouse=True)
def _no_descriptors_left() -> Iterator[None]:
    before = descriptors()
    yield
    assert descriptors() == before


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def skipped(top: Path, shelf: Shelf, **options: object) -> dict[str, str]:
    """Return the report of a scan: paths with reasons."""
    return {entry.path: entry.reason.value for entry in taken(top, shelf, **options)[1].skipped}


def paths(top: Path, shelf: Shelf, **options: object) -> list[str]:
    return ["/".join(out.parts) for out in taken(top, shelf, **options)[0]]


def test_entries_come_in_the_order_of_their_paths_with_all_that_a_root_holds(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True, mode=0o700)
    (tmp_path / "a" / "x").write_bytes(b"12345")
    (tmp_path / "a" / "x").chmod(0o755)
    (tmp_path / "a.b").touch(mode=0o400)
    (tmp_path / "a-b").symlink_to("a/x")
    (tmp_path / "dangling").symlink_to("/nowhere/ä")
    (tmp_path / "to-folder").symlink_to("a")
    (tmp_path / "ä").touch()
    before = snapshot(tmp_path)

    entries, report = taken(tmp_path, shelf)

    assert [(out.parts, out.kind, out.size, out.target) for out in entries] == [
        (("a",), "directory", 0, ""),
        (("a", "empty"), "directory", 0, ""),
        (("a", "x"), "file", 5, ""),
        (("a-b",), "link", 0, "a/x"),
        (("a.b",), "file", 0, ""),
        (("dangling",), "link", 0, "/nowhere/ä"),
        (("to-folder",), "link", 0, "a"),
        (("ä",), "file", 0, ""),
    ]
    assert (entries[2].mode, entries[4].mode, entries[2].content) == (0o755, 0o400, b"12345")
    assert report.complete
    assert snapshot(tmp_path) == before


def test_the_folder_itself_may_be_a_link(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")

    assert paths(tmp_path / "link", shelf) == ["file"]


@pytest.mark.parametrize(("name", "error"), [("missing", FileNotFoundError), ("file", NotADirectoryError)])
def test_what_is_no_folder_is_refused_at_once(tmp_path: Path, name: str, error: type[OSError]) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(error):
        scan(str(tmp_path / name))


def test_links_in_a_circle_are_only_links(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "up").symlink_to("..")

    assert [out.target for out in taken(tmp_path, shelf)[0]] == ["b", "a", "self", ".."]


def test_what_no_root_can_hold_is_reported_with_its_reason(tmp_path: Path, shelf: Shelf) -> None:
    os.mkfifo(tmp_path / "fifo")
    listening = socket.socket(socket.AF_UNIX)
    fd = open_top(str(tmp_path))
    listening.bind(f"/proc/self/fd/{fd}/socket")
    os.close(fd)
    listening.close()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")).touch()
    (tmp_path / ".freehold-1-1.staging").mkdir()
    (tmp_path / "odd").symlink_to(os.fsdecode(b"to\xff"))
    (tmp_path / "held").touch()

    assert skipped(tmp_path, shelf) == {
        ".freehold-1-1.staging": "unfinished_checkout",
        "fifo": "fifo",
        "odd": "link_target",
        "socket": "socket",
        "\\xff\\xfe": "not_utf8",
    }
    assert paths(tmp_path, shelf) == ["held"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_reported(tmp_path: Path, shelf: Shelf) -> None:
    os.mknod(tmp_path / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))

    assert skipped(tmp_path, shelf) == {"null": "device"}


def test_special_bits_and_hard_links_are_reported_while_the_files_are_held(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "one").write_bytes(b"content")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (tmp_path / "root").touch()
    (tmp_path / "root").chmod(0o4755)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    entries, report = taken(tmp_path, shelf)

    assert [(out.parts[0], out.mode) for out in entries][1:3] == [("root", 0o755), ("shared", 0o777)]
    assert [(entry.path, entry.reason, entry.detail) for entry in report.skipped] == [
        ("one", Reason.HARD_LINK, ""),
        ("root", Reason.SPECIAL_BITS, "4000"),
        ("shared", Reason.SPECIAL_BITS, "1000"),
        ("two", Reason.HARD_LINK, ""),
    ]
    assert not report.complete
    assert report.left_out() == frozenset()


def test_rules_for_names_are_those_that_were_handed_in(tmp_path: Path, shelf: Shelf) -> None:
    for name in ("README", "a:b", "readme", "x"):
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "X")  # not held, so no collision
    (tmp_path / "con").mkdir()
    (tmp_path / "con" / "inside").touch()

    def unportable(name: str) -> str | None:
        return "colon" if ":" in name else "reserved" if name == "con" else None

    entries, report = taken(tmp_path, shelf, unportable=unportable, fold=str.casefold)
    assert [out.parts for out in entries] == [("README",), ("x",)]
    assert [(entry.path, entry.reason, entry.detail) for entry in report.skipped] == [
        ("X", Reason.FIFO, ""),
        ("a:b", Reason.UNPORTABLE, "colon"),
        ("con", Reason.UNPORTABLE, "reserved"),
        ("readme", Reason.COLLISION, "README"),
    ]


def test_what_lies_too_deep_or_has_too_long_a_path_is_reported_where_it_begins(tmp_path: Path, shelf: Shelf) -> None:
    for top, name in (("deep", "d"), ("long", "n" * 250)):
        (tmp_path / top).mkdir()
        fd = open_top(str(tmp_path / top))
        for _ in range(PATH_DEPTH_MAX + 1):
            os.mkdir(name, dir_fd=fd)
            inner = open_folder(name, fd)
            os.close(fd)
            fd = inner
        os.close(fd)

    deep, long = taken(tmp_path / "deep", shelf), taken(tmp_path / "long", shelf)
    assert (len(deep[0]), [(len(entry.parts), entry.reason) for entry in deep[1].skipped]) == (256, [(257, Reason.TOO_DEEP)])
    assert [entry.reason for entry in long[1].skipped] == [Reason.PATH_TOO_LONG]
    assert max(len("/".join(out.parts)) for out in long[0]) <= PATH_BYTES_MAX < len("/".join(long[1].skipped[0].parts))


def test_ignored_paths_are_told_apart_from_skipped_ones_and_an_ignored_folder_is_not_entered(tmp_path: Path, shelf: Shelf) -> None:
    for name in ("build/out/x.o", "src/build", "src/x.o", "src/keep.o", "top/x", "src/top/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "build" / "fifo")
    entries, report = taken(tmp_path, shelf, ignore=["build/", "*.o", "!keep.o", "/top", "# a comment"])

    assert ["/".join(out.parts) for out in entries] == ["src", "src/build", "src/keep.o", "src/top", "src/top/x"]
    assert ["/".join(parts) for parts in report.ignored] == ["build", "src/x.o", "top"]
    assert report.complete


def test_a_pattern_that_is_none_is_refused_and_a_single_text_is_not_taken_for_many(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid"):
        scan(str(tmp_path), ignore=["!"])
    with pytest.raises(TypeError):
        scan(str(tmp_path), ignore="*.o")


def test_a_scan_that_is_given_up_leaves_no_descriptor_and_a_file_is_not_read_after_it(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    entries = scan(str(tmp_path))
    found = [next(entries) for _ in range(3)]
    entries.close()
    others = [open_top(str(tmp_path / "a" / "b")) for _ in range(5)]  # under the numbers that were given back

    with pytest.raises(OSError, match="descriptor") as raised:
        found[2].read(shelf.take)
    assert raised.value.errno == errno.EBADF
    entries.close()
    for fd in others:
        os.close(fd)


class Meddler(Shelf):
    """A shelf that does something to the file while it is read, in as many reads as it is told."""

    def __init__(self, file: Path, times: int) -> None:
        super().__init__()
        self.meddled = file
        self.times = times

    def take(self, pieces: Iterable[bytes]) -> bytes:
        return super().take(self._meddle(pieces))

    def _meddle(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(pieces):
            if number == 0 and self.times:
                self.times -= 1
                with self.meddled.open("ab") as file:
                    file.write(b"more")
            yield piece


def test_a_file_that_changed_while_it_was_read_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(2 * CHUNK_BYTES))
    meddler = Meddler(tmp_path / "file", times=1)
    entries, report = taken(tmp_path, meddler)

    assert meddler.reads == 2
    assert entries[0].size == 2 * CHUNK_BYTES + 4 == len(meddler.bytes[entries[0].content])
    assert report.complete


def test_a_file_that_goes_on_changing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(2 * CHUNK_BYTES))
    entries, report = taken(tmp_path, Meddler(tmp_path / "file", times=2))

    assert entries == []
    assert [entry.reason for entry in report.skipped] == [Reason.CHANGED_WHILE_READING]


def test_an_error_of_whoever_takes_the_bytes_is_his_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")

    def refuse(pieces: Iterable[bytes]) -> bytes:
        raise Unavailable("no room", code="database_busy")

    with scan(str(tmp_path)) as entries, pytest.raises(Unavailable, match="no room"):
        next(entries).read(refuse)


@pytest.mark.parametrize("swap", ["link", "fifo", "folder", "gone"])
def test_what_was_swapped_for_a_file_is_neither_followed_nor_waited_for(tmp_path: Path, shelf: Shelf, swap: str) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (top / "file").write_bytes(b"content")
    with scan(str(top)) as entries:
        found = next(entries)
        (top / "file").unlink()
        if swap == "link":
            (top / "file").symlink_to(tmp_path / "secret")
        elif swap == "fifo":
            os.mkfifo(top / "file")
        elif swap == "folder":
            (top / "file").mkdir()

        assert found.read(shelf.take) is None
        assert [entry.reason for entry in entries.report.skipped] == [Reason.VANISHED if swap == "gone" else Reason.CHANGED_WHILE_READING]
    assert b"secret" not in shelf.bytes.values()


def test_a_folder_that_is_swapped_for_a_link_meanwhile_is_not_followed(tmp_path: Path, shelf: Shelf) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    for path in (top / "a", top / "b", outside):
        path.mkdir(parents=True)
        (path / "file").write_bytes(str(path).encode())
    found = []
    with scan(str(top)) as entries:
        for entry in entries:
            found.append("/".join(entry.parts))
            if entry.parts == ("a",):  # its listing was made, its file was not looked at yet
                (top / "a").rename(tmp_path / "moved")
                (top / "a").symlink_to(outside)
                (top / "b").rename(tmp_path / "moved-b")
                (top / "b").symlink_to(outside)
            if entry.kind == "file":
                entry.read(shelf.take)

    assert found == ["a", "a/file", "b"]
    assert list(shelf.bytes.values()) == [str(top / "a").encode()]


def test_a_name_that_vanishes_between_listing_and_look_is_reported(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    with scan(str(tmp_path)) as entries:
        next(entries)
        (tmp_path / "b").unlink()
        assert list(entries) == []

    assert [(entry.path, entry.reason) for entry in entries.report.skipped] == [("b", Reason.VANISHED)]


def test_a_run_file_that_this_process_has_open_is_left_out_with_what_stands_beside_it(tmp_path: Path, shelf: Shelf) -> None:
    for name in ("r.sqlite", "r.sqlite-shm", "r.sqlite-wal", "other.sqlite", "other.sqlite-wal", "lone-wal"):
        (tmp_path / name).touch()
    inode = platform.inode_of((tmp_path / "r.sqlite").stat())
    REGISTRY.own(inode, "somebody")
    try:
        assert skipped(tmp_path, shelf) == dict.fromkeys(("r.sqlite", "r.sqlite-shm", "r.sqlite-wal"), "in_use")
    finally:
        REGISTRY.release(inode)
    assert skipped(tmp_path, shelf) == {}


@needs_another_user
def test_what_may_not_be_read_is_reported_and_what_is_beside_it_is_held() -> None:
    with nobodys_folder() as top:
        for path in (top / "closed" / "x", top / "listed" / "x", top / "file", top / "held"):
            path.parent.mkdir(exist_ok=True)
            path.touch()
        (top / "closed").chmod(0o700)
        (top / "listed").chmod(0o704)
        (top / "file").chmod(0o600)
        found = as_nobody(top, "e, r = taken(top, shelf); print([o.parts for o in e], [(s.path, str(s.reason)) for s in r.skipped])")

    assert found.strip() == (
        "[('held',), ('listed',)] [('closed', 'no_permission'), ('file', 'no_permission'), ('listed/x', 'no_permission')]"
    )


def test_a_folder_of_20_000_names_is_listed_whole_and_in_order(quick: Path, shelf: Shelf) -> None:
    for number in range(20_000):
        os.close(os.open(quick / f"{number:05}", os.O_CREAT | os.O_WRONLY))
    with scan(str(quick)) as entries:
        assert [entry.parts[0] for entry in entries] == [f"{number:05}" for number in range(20_000)]
        assert entries.report.complete
