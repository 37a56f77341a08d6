"""A handle does what Python's own does on a real file, and tells what was written once, at its close, or never."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import Kept, kept
from onepath import NAME, OnePath

from freehold.schema.limits import CHUNK_BYTES, FILE_BYTES_MAX
from freehold.storage.content import EMPTY, Content, write_stream
from freehold.storage.filestate import FileState
from freehold.storage.openfile import OpenFile
from freehold.storage.openmode import parse_mode

C = CHUNK_BYTES
HELLO = Content(5, b"hello")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("kept")) as found:
        yield found


@pytest.fixture
def path(objects: Kept) -> OnePath:
    return OnePath(objects, HELLO)


def raw(path: OnePath, mode: str) -> OpenFile:
    found = path.open(mode, 0)
    assert isinstance(found, OpenFile)
    return found


def size(path: OnePath) -> int:
    assert path.state is not None
    return path.state.size


def test_a_close_tells_what_was_written_and_tells_it_once(path: OnePath) -> None:
    file = raw(path, "r+b")
    file.write(b"J")
    assert path.told == []

    file.close()
    file.close()

    assert path.told == [Content(5, b"Jello")]
    assert file.closed


@pytest.mark.parametrize("mode", ["rb", "r+b", "ab", "a+b"])
def test_a_handle_that_wrote_nothing_tells_nothing(path: OnePath, mode: str) -> None:
    with raw(path, mode) as file:
        file.seek(2)
        file.seek(100)
        if mode != "rb":
            file.write(b"")
        file.tell()

    assert path.told == []


@pytest.mark.parametrize("mode", ["wb", "w+b", "ab", "xb", "x+b"])
def test_a_new_file_is_told_though_nothing_was_written(objects: Kept, mode: str) -> None:
    path = OnePath(objects)

    raw(path, mode).close()

    assert path.told == [EMPTY]


def test_a_truncating_mode_has_written(path: OnePath) -> None:
    raw(path, "wb").close()

    assert path.told == [EMPTY]


def test_what_is_discarded_is_not_told_and_is_taken_back(path: OnePath) -> None:
    reader = raw(path, "rb")
    file = raw(path, "wb")
    file.write(b"other")
    assert reader.read() == b"other"

    file.discard()
    file.discard()
    file.close()

    assert path.told == []
    assert (reader.seek(0), reader.read()) == (0, b"hello")
    assert file.closed
    reader.close()


def test_an_exception_inside_the_block_discards(path: OnePath) -> None:
    with pytest.raises(ZeroDivisionError), raw(path, "r+b") as file:
        file.write(b"J")
        raise ZeroDivisionError

    assert (path.told, path.content, file.closed) == ([], HELLO, True)


def test_a_new_file_that_is_discarded_was_never_there(objects: Kept) -> None:
    path = OnePath(objects)

    raw(path, "xb").discard()

    assert path.told == []
    with pytest.raises(FileNotFoundError):
        path.open("rb")


def test_a_handle_that_is_lost_discards_and_warns(path: OnePath) -> None:
    file = raw(path, "r+b")
    file.write(b"J")

    with pytest.warns(ResourceWarning, match="unclosed file <OpenFile name='file' mode='rb\\+'>; what was written to it was discarded"):
        del file

    assert (path.told, path.content) == ([], HELLO)


def test_a_reader_that_is_lost_warns_of_nothing_lost(path: OnePath) -> None:
    file = raw(path, "rb")

    with pytest.warns(ResourceWarning) as warned:
        del file

    assert [str(warning.message) for warning in warned] == ["unclosed file <OpenFile name='file' mode='rb'>"]


def test_a_closed_handle_keeps_no_chunk_of_the_file(objects: Kept) -> None:
    path = OnePath(objects, write_stream(objects, [b"x" * C]))
    file = raw(path, "rb")
    file.read()
    state = path.state
    assert state is not None
    used = state._base

    file.close()

    assert used._last is not None
    assert state._base is not used
    assert path.state is None


def refuse(_: Content) -> None:
    raise PermissionError(errno.EPERM, "no")


def test_a_content_that_is_refused_is_taken_back_and_the_handle_closed(objects: Kept) -> None:
    state = FileState(objects, HELLO)
    file, other = (OpenFile(state, parse_mode(mode), NAME, refuse) for mode in ("r+b", "rb"))
    file.write(b"J")

    with pytest.raises(PermissionError):
        file.close()
    file.close()

    assert (file.closed, other.read(), state.handles, state.writers) == (True, b"hello", 1, 0)
    other.close()


def test_handles_see_each_others_writes_and_append_in_turn(path: OnePath) -> None:
    first, second, reader = raw(path, "ab"), raw(path, "ab"), raw(path, "rb")
    assert reader.read() == b"hello"

    for number in range(5):
        first.write(b"1" * number)
        second.write(b"2" * number)
        assert second.tell() == size(path)

    assert reader.read() == b"".join(b"1" * number + b"2" * number for number in range(5))
    first.close()
    second.close()
    reader.close()
    assert path.content is not None
    assert path.content.size == 25


def test_a_handle_goes_on_when_the_name_is_gone_and_nothing_comes_back(path: OnePath) -> None:
    file = raw(path, "r+b")
    file.write(b"J")
    path.unlink()

    with raw(path, "xb") as other:
        other.write(b"another")
    assert (file.seek(0), file.read()) == (0, b"Jello")
    file.write(b"!")
    file.close()

    assert path.content == Content(7, b"another")


def test_a_close_tells_what_others_have_written_until_then(path: OnePath) -> None:
    first, second = raw(path, "r+b"), raw(path, "ab")
    second.write(b"!")
    first.write(b"J")

    first.close()
    assert path.content == Content(6, b"Jello!")
    second.write(b"?")
    second.discard()

    assert path.content == Content(6, b"Jello!")
    assert len(path.told) == 1


def test_writes_that_another_handle_took_back_are_not_lost_in_silence(path: OnePath) -> None:
    first, second = raw(path, "r+b"), raw(path, "ab")
    second.write(b"!")
    first.write(b"J")

    first.discard()

    assert size(path) == 5
    for call in (lambda: second.write(b"?"), lambda: second.truncate(2), second.close):
        with pytest.raises(OSError, match=NAME) as raised:
            call()
        assert raised.value.errno == errno.ESTALE
    assert (second.closed, path.told) == (True, [])


def test_writes_that_were_told_are_not_taken_back_by_another_handle(path: OnePath) -> None:
    first, second = raw(path, "ab"), raw(path, "ab")
    second.write(b"!")
    first.write(b"!")
    first.close()
    third = raw(path, "ab")
    third.write(b"?")

    third.discard()
    second.write(b".")
    second.close()

    assert path.content == Content(8, b"hello!!.")


def test_a_discard_of_a_handle_that_wrote_nothing_takes_nothing_back(path: OnePath) -> None:
    first, second = raw(path, "ab"), raw(path, "ab")
    first.write(b"!")

    second.discard()
    first.close()

    assert path.content == Content(6, b"hello!")


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "write", "close", "discard", "lose"]), st.integers(0, 2)),
        max_size=25,
    )
)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_of_what_was_written_all_is_told_taken_back_or_refused(objects: Kept, calls: list[tuple[str, int]]) -> None:
    path = OnePath(objects, EMPTY)
    handles: dict[int, OpenFile] = {}
    untold: dict[int, list[bytes]] = {}
    stale: set[int] = set()
    told: list[bytes] = []
    now: list[bytes] = []
    for step, (call, number) in enumerate(calls):
        file = handles.get(number)
        if call == "open" and file is None:
            handles[number], untold[number] = raw(path, "ab"), []
        if call == "open" or file is None:
            continue
        text = bytes([step + 65])
        if call == "write" and number in stale:
            with pytest.raises(OSError, match=NAME):
                file.write(text)
        elif call == "write":
            file.write(text)
            untold[number].append(text)
            now.append(text)
        elif call == "close" and number in stale:
            with pytest.raises(OSError, match=NAME):
                file.close()
        elif call == "close":
            wrote = file._wrote_in is not None
            file.close()
            if wrote:
                told = list(now)
                untold = {other: [] for other in untold}
        else:
            if call == "discard":
                file.discard()
            if untold[number] and number not in stale:
                now = list(told)
                stale |= {other for other, lost in untold.items() if lost and other in handles}
                untold = {other: [] for other in untold}
        if call in ("close", "discard", "lose"):
            del handles[number], file
            stale.discard(number)
            untold.pop(number)
        state = path.state
        assert state is None or b"".join(now) == bytes(read_all(state))
        assert path.content == write_stream(objects, told)
    for file in handles.values():
        file.discard()


def read_all(state: FileState) -> bytearray:
    found = bytearray(state.size)
    state.read_into(0, memoryview(found))
    return found


@pytest.mark.parametrize("act", ["write", "truncate", "seek", "seek to the end"])
def test_what_no_file_can_hold_is_refused_and_nothing_is_changed(path: OnePath, act: str) -> None:
    with raw(path, "r+b") as file:
        position = file.seek(FILE_BYTES_MAX)
        with pytest.raises(OSError, match=NAME) as raised:
            match act:
                case "write":
                    file.write(b"x")
                case "truncate":
                    file.truncate(FILE_BYTES_MAX + 1)
                case "seek":
                    file.seek(1, os.SEEK_CUR)
                case _:
                    file.seek(FILE_BYTES_MAX, os.SEEK_END)

        assert raised.value.errno == (errno.EINVAL if act.startswith("seek") else errno.EFBIG)
        assert raised.value.filename == NAME
        assert (file.tell(), size(path)) == (position, 5)
    assert path.told == []


def test_a_sparse_file_of_terabytes_is_written_and_read(path: OnePath) -> None:
    with raw(path, "r+b") as file:
        file.seek(FILE_BYTES_MAX - 3)
        file.write(b"end")
        file.seek(FILE_BYTES_MAX // 2)
        assert file.read(3) == bytes(3)
        file.seek(-4, os.SEEK_END)
        assert file.read() == b"\0end"

    assert path.content is not None
    assert path.content.size == FILE_BYTES_MAX


@pytest.mark.parametrize("whence", [os.SEEK_DATA, os.SEEK_HOLE])
@pytest.mark.parametrize("offset", [-1, 0, 3, 5, 6])
def test_data_and_holes_are_those_of_a_file_without_holes(path: OnePath, tmp_path: Path, whence: int, offset: int) -> None:
    (tmp_path / "file").write_bytes(b"hello")

    with raw(path, "rb") as ours, (tmp_path / "file").open("rb", 0) as theirs:
        assert outcome(lambda: ours.seek(offset, whence)) == outcome(lambda: theirs.seek(offset, whence))
        assert ours.tell() == theirs.tell()


def outcome(call: Any) -> object:
    try:
        return call()
    except OSError as error:
        return type(error), error.errno
    except (ValueError, TypeError) as error:
        return type(error), str(error).rstrip(".")  # of one refusal Python has both


@pytest.mark.parametrize("mode", ["rb", "wb", "r+b", "a+b"])
@pytest.mark.parametrize("is_closed", [False, True])
def test_what_a_mode_or_a_closed_file_does_not_allow_is_refused_as_by_open(
    objects: Kept, tmp_path: Path, mode: str, is_closed: bool
) -> None:
    path = OnePath(objects, HELLO)
    (tmp_path / "file").write_bytes(b"hello")
    ours, theirs = raw(path, mode), cast("io.FileIO", (tmp_path / "file").open(mode, 0))
    if is_closed:
        ours.close()
        theirs.close()

    # Of a file that is only written, Python's readall asks the system, which says EBADF.
    for call in CALLS if mode == "wb" else [lambda file: file.readall(), *CALLS]:
        assert outcome(lambda call=call: call(ours)) == outcome(lambda call=call: call(theirs))
    ours.close()
    theirs.close()


CALLS: list[Any] = [
    lambda file: file.readable(),
    lambda file: file.writable(),
    lambda file: file.seekable(),
    lambda file: file.isatty(),
    lambda file: file.tell(),
    lambda file: file.read(2),
    lambda file: file.read(),
    lambda file: file.read(None),
    lambda file: file.readinto(bytearray(3)),
    lambda file: file.readline(),
    lambda file: file.readlines(),
    list,
    lambda file: file.write(b"x"),
    lambda file: file.write(bytearray(b"yz")),
    lambda file: file.write(memoryview(b"abc")),
    lambda file: file.writelines([b"1", b"2"]),
    lambda file: file.seek(0),
    lambda file: file.seek(-1),
    lambda file: file.seek(-100, 2),
    lambda file: file.seek(0, 9),
    lambda file: file.truncate(-1),
    lambda file: file.truncate(3),
    lambda file: file.truncate(),
    lambda file: file.truncate(None),
    lambda file: file.flush(),
    lambda file: file.mode,
    lambda file: file.closed,
]


@pytest.mark.parametrize(
    "call",
    [
        lambda file: file.write("x"),
        lambda file: file.seek(1.0),
        lambda file: file.truncate(1.0),
        lambda file: file.readinto(b"x"),
        lambda file: file.write(3),
    ],
)
def test_what_is_of_another_type_is_refused_and_nothing_is_changed(path: OnePath, call: Any) -> None:
    with raw(path, "r+b") as file, pytest.raises(TypeError):
        call(file)

    assert path.told == []


def test_a_handle_has_no_descriptor(path: OnePath) -> None:
    with raw(path, "rb") as file, pytest.raises(io.UnsupportedOperation):
        file.fileno()


def test_what_cannot_be_kept_at_the_close_is_taken_back(path: OnePath, objects: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = raw(path, "r+b"), raw(path, "rb")
    file.write(b"x" * 1000)
    objects.db.set_authorizer(lambda *_: 1)  # no statement is allowed from here on
    try:
        with pytest.raises(Exception, match="not authorized"):
            file.close()
    finally:
        objects.db.set_authorizer(None)

    assert (file.closed, path.told, size(path)) == (True, [], 5)
    other.close()
