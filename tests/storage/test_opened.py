"""What `open_file` gives is used like what Python's own `open` gives: the same results, the same errors, the same bytes at the end."""

from __future__ import annotations

import errno
import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from kept import Kept, kept
from onepath import NAME, OnePath

from freehold.schema.errors import Damaged
from freehold.schema.limits import CHUNK_BYTES
from freehold.storage import filestate
from freehold.storage.content import Content, check_content, read, write_stream

C = CHUNK_BYTES
HELLO = Content(5, b"hello")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("kept")) as found:
        yield found


@pytest.fixture
def path(objects: Kept) -> OnePath:
    return OnePath(objects, HELLO)


def outcome(call: Callable[[], object]) -> object:
    """Return what a call gave or raised, so that two can be compared."""
    try:
        return call()
    except OSError as error:
        return type(error), error.errno
    except (ValueError, TypeError, OverflowError) as error:
        return type(error), str(error).rstrip(".")


OFFSETS = st.integers(-3, 40) | st.integers(0, 3 * C) | st.sampled_from([C - 1, C, C + 1, 2 * C])
LENGTHS = st.integers(0, 40) | st.integers(0, 2 * C)
NUMBERS = st.integers(0, 1)
BINARY = ["rb", "wb", "ab", "xb", "r+b", "w+b", "a+b", "x+b"]
TEXT = ["r", "w", "a", "r+", "w+", "a+"]


class TwoHandles(RuleBasedStateMachine):
    """Two handles of ours on one name, and two of Python's own on a real file."""

    kept: Kept
    compared = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp())
        self.file = self.folder / NAME
        self.path = OnePath(self.kept)
        self.ours: dict[int, Any] = {}
        self.theirs: dict[int, Any] = {}
        self.cookies: dict[int, list[int]] = {0: [0], 1: [0]}

    def teardown(self) -> None:
        for number in list(self.ours):
            self.both(number, lambda file: file.close())
        assert (self.path.content is not None) == self.file.exists()
        if self.path.content is not None:
            data = self.file.read_bytes()
            assert b"".join(read(self.kept, self.path.content)) == data
            assert self.path.content == write_stream(self.kept, [data])
            check_content(self.kept, self.path.content)
        rmtree(self.folder)

    def both(self, number: int, call: Callable[[Any], object]) -> object:
        ours, theirs = outcome(lambda: call(self.ours[number])), outcome(lambda: call(self.theirs[number]))
        assert ours == theirs
        type(self).compared += 1
        return ours

    @precondition(lambda self: len(self.ours) < 2)
    @rule(mode=st.sampled_from(BINARY), buffering=st.sampled_from([0, 16, 8192]))
    def open_binary(self, mode: str, buffering: int) -> None:
        self._open(mode, buffering)

    @precondition(lambda self: len(self.ours) < 2)
    @rule(mode=st.sampled_from(TEXT), buffering=st.sampled_from([2, 16, 8192]), newline=st.sampled_from([None, "", "\n", "\r\n"]))
    def open_text(self, mode: str, buffering: int, newline: str | None) -> None:
        # Any bytes are text in this encoding.
        self._open(mode, buffering, encoding="latin-1", newline=newline)

    def _open(self, mode: str, buffering: int, **options: Any) -> None:
        number = 1 if 0 in self.ours else 0
        ours = outcome(lambda: self.path.open(mode, buffering, **options))
        theirs = outcome(lambda: self.file.open(mode, buffering, **options))
        if isinstance(ours, io.IOBase):
            assert isinstance(theirs, io.IOBase)
            assert isinstance(ours, type(theirs)) or buffering == 0
            assert (ours.mode, ours.closed) == (theirs.mode, theirs.closed)  # type: ignore[attr-defined]
            self.ours[number], self.theirs[number] = ours, theirs
            self.cookies[number] = [0]
        else:
            assert ours == theirs

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, byte=st.sampled_from(b"ab\r\n\xe9"), length=LENGTHS)
    def write(self, number: int, byte: int, length: int) -> None:
        data = bytes([byte, 65]) * length
        self._call(number, lambda file: file.write(data.decode("latin-1") if is_text(file) else data))

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, length=LENGTHS | st.just(-1))
    def read(self, number: int, length: int) -> None:
        self._call(number, lambda file: file.read(length))

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, length=LENGTHS)
    def readinto(self, number: int, length: int) -> None:
        def call(file: Any) -> object:
            target = bytearray(length)
            return file.readinto(target), target

        if number in self.ours and not is_text(self.ours[number]):
            self._call(number, call)

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, length=st.just(-1) | st.integers(0, 20))
    def readline(self, number: int, length: int) -> None:
        self._call(number, lambda file: file.readline(length))

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, offset=OFFSETS, whence=st.integers(0, 3))
    def seek(self, number: int, offset: int, whence: int) -> None:
        if number in self.ours and not is_text(self.ours[number]) and whence < os.SEEK_DATA:
            self._call(number, lambda file: file.seek(offset, whence))

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, cookie=st.integers(0, 5), end=st.booleans())
    def seek_text(self, number: int, cookie: int, end: bool) -> None:
        known = self.cookies[number]
        self._call(number, lambda file: file.seek(0, 2) if end else file.seek(known[cookie % len(known)]))

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS)
    def tell(self, number: int) -> None:
        found = self._call(number, lambda file: file.tell())
        if isinstance(found, int):
            self.cookies[number].append(found)

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS, size=OFFSETS | st.none())
    def truncate(self, number: int, size: int | None) -> None:
        self._call(number, lambda file: file.truncate(size))
        # A text file remembers what it decoded; what Python does with it when it was cut off is not ours to compare.
        if number in self.ours and is_text(self.ours[number]):
            self._call(number, lambda file: file.seek(0))

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS)
    def flush(self, number: int) -> None:
        self._call(number, lambda file: file.flush())

    @precondition(lambda self: self.ours)
    @rule(number=NUMBERS)
    def use_closed(self, number: int) -> None:
        self._call(number, lambda file: file.close())
        self._call(number, lambda file: file.read(1))
        self._call(number, lambda file: file.tell())
        self.ours.pop(number, None)
        self.theirs.pop(number, None)

    @rule()
    def unlink(self) -> None:
        assert outcome(self.path.unlink) == outcome(self.file.unlink)

    def _call(self, number: int, call: Callable[[Any], object]) -> object:
        return self.both(number, call) if number in self.ours else None


def is_text(file: object) -> bool:
    return isinstance(file, io.TextIOBase)


@pytest.mark.parametrize("bound", [1, filestate._DIRTY_CHUNKS_MAX])
def test_two_handles_do_what_two_of_pythons_own_do_on_a_real_file(objects: Kept, bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filestate, "_DIRTY_CHUNKS_MAX", bound)

    class Case(TwoHandles):
        kept = objects

    run_state_machine_as_test(Case, settings=settings(max_examples=60, stateful_step_count=25))

    assert Case.compared > 300


@pytest.mark.prove
@pytest.mark.parametrize("bound", [1, 2, filestate._DIRTY_CHUNKS_MAX])
def test_so_they_do_for_long(objects: Kept, bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filestate, "_DIRTY_CHUNKS_MAX", bound)

    class Case(TwoHandles):
        kept = objects

    run_state_machine_as_test(Case, settings=settings(max_examples=2_000, stateful_step_count=60))

    assert Case.compared > 10_000


WAYS: dict[str, Callable[[OnePath], Any]] = {
    "raw": lambda path: path.open("r+b", 0),
    "writer": lambda path: path.open("ab"),
    "random": lambda path: path.open("r+b"),
    "text": lambda path: path.open("a", encoding="utf-8"),
    "line by line": lambda path: path.open("a", 1, encoding="utf-8"),
    "text that reads": lambda path: path.open("r+", encoding="utf-8"),
    "somebody's text": lambda path: io.TextIOWrapper(path.open("ab"), encoding="utf-8"),
    "somebody's buffer": lambda path: io.BufferedWriter(path.open("r+b", 0)),
}
MINE = [way for way in WAYS if not way.startswith("somebody")]


def some(file: Any) -> Any:
    return "Jä" if is_text(file) else "Jä".encode()


def lose(files: list[Any]) -> None:
    files.clear()
    gc.collect()


def raw_of(file: Any) -> Any:
    return getattr(getattr(file, "buffer", file), "raw", file)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_written_is_told_at_the_close(path: OnePath, way: str) -> None:
    with WAYS[way](path) as file:
        file.write(some(file))
        assert path.told == []

    file.close()
    assert path.told == [path.content]
    assert path.content != HELLO
    assert path.state is None


@pytest.mark.parametrize("way", MINE)
@pytest.mark.parametrize("is_flushed", [False, True])
def test_an_exception_inside_the_block_discards(path: OnePath, way: str, is_flushed: bool) -> None:
    with pytest.raises(ZeroDivisionError), WAYS[way](path) as file:
        file.write(some(file))
        if is_flushed:
            file.flush()
        raise ZeroDivisionError

    file.close()
    assert (file.closed, raw_of(file).closed, path.told, path.content) == (True, True, [], HELLO)
    with pytest.raises(ValueError, match="closed"):
        file.write(some(file))


@pytest.mark.parametrize("way", MINE)
def test_a_file_can_be_discarded(path: OnePath, way: str) -> None:
    file = WAYS[way](path)
    file.write(some(file))

    file.discard()
    file.discard()
    file.close()

    assert (path.told, path.content) == ([], HELLO)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_file_that_is_lost_is_discarded_with_a_warning(path: OnePath, way: str, is_flushed: bool) -> None:
    files = [WAYS[way](path)]
    files[0].write(some(files[0]))
    if is_flushed:
        files[0].flush()
    watcher = path.open("rb", 0)

    with pytest.warns(ResourceWarning, match="unclosed file .*file.*discarded") as warned:
        lose(files)

    assert len(warned) == 1
    assert (path.told, path.content, watcher.read()) == ([], HELLO, b"hello")
    watcher.close()


@pytest.mark.parametrize("way", WAYS)
def test_so_is_one_that_is_lost_in_a_ring(path: OnePath, way: str) -> None:
    files = [WAYS[way](path)]
    files[0].write(some(files[0]))
    files[0].ring = {"file": files[0], "raw": raw_of(files[0])}

    with pytest.warns(ResourceWarning, match="unclosed file"):
        lose(files)

    assert (path.told, path.content) == ([], HELLO)


def test_what_waited_in_the_buffer_of_a_lost_file_is_not_even_written(path: OnePath, objects: Kept) -> None:
    # A collector may come in the middle of anything, a statement of the same connection too.
    files = [path.open("ab", 8 * 2**20)]
    files[0].write(os.urandom(6 * 2**20))
    before = objects.count()

    with pytest.warns(ResourceWarning):
        lose(files)

    assert objects.count() == before


def test_what_is_lost_raises_nothing_where_nobody_hears_it() -> None:
    kit = Path(__file__).parents[1] / "kit"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(kit), *sys.path])}

    # Only in this mode such an error is shown by every Python.
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LOST], env=environment, capture_output=True, text=True, timeout=50, check=False
    )

    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr
    assert ended.stderr.count("ResourceWarning: unclosed file") == 4
    assert "Exception ignored" not in ended.stderr


LOST = """
import io, sys, tempfile
from pathlib import Path
from kept import kept
from onepath import OnePath
from freehold.storage.content import Content
with tempfile.TemporaryDirectory() as folder, kept(Path(folder)) as objects:
    path = OnePath(objects, Content(5, b"hello"))
    for number in range(4):
        file = path.open("a") if number == 0 else path.open("r+b") if number == 1 else path.open("ab", number - 3)
        file = io.TextIOWrapper(file) if number == 2 else io.BufferedWriter(file) if number == 3 else file
        file.write(b"!" if not isinstance(file, io.TextIOBase) else "!")
        del file
    print(path.told)
"""


def test_a_reader_that_is_lost_warns_too(path: OnePath) -> None:
    files = [path.open()]
    assert files[0].read() == "hello"

    with pytest.warns(ResourceWarning, match="unclosed file <.*'file' mode='r' encoding='.*'>$"):
        lose(files)


@pytest.mark.parametrize("way", MINE)
def test_what_is_closed_is_not_warned_of(path: OnePath, way: str) -> None:
    file = WAYS[way](path)
    file.close()
    del file

    assert gc.collect() >= 0


@pytest.mark.parametrize("mode", ["a", "r+", "ab", "r+b", "rb"])
def test_what_is_detached_is_left_to_whoever_has_it(path: OnePath, mode: str) -> None:
    file = path.open(mode)
    inner: Any = file.detach()
    with pytest.raises(ValueError, match="detached"):
        file.discard()
    del file
    gc.collect()

    if mode != "rb":
        inner.write(b"!")
    inner.close()

    assert len(path.told) == (mode != "rb")


@pytest.mark.parametrize("way", MINE)
def test_a_close_whose_flush_fails_tells_nothing(path: OnePath, way: str) -> None:
    file = WAYS[way](path)
    other = path.open("ab", 0)
    other.write(b"?")
    file.write(some(file))
    file.flush()
    other.discard()  # what was written is gone
    if way != "raw":
        file.write(some(file))

    with pytest.raises(OSError, match=NAME) as raised:
        file.close()

    assert raised.value.errno == errno.ESTALE
    assert (file.closed, path.told, path.content) == (True, [], HELLO)
    file.close()


@pytest.mark.parametrize(
    ("mode", "options"), [("w", {"encoding": "no such"}), ("w", {"newline": "x"}), ("w+", {"errors": 5}), ("wb", {"buffering": "x"})]
)
def test_what_open_refuses_when_the_file_is_open_already_leaves_it_as_it_was(path: OnePath, mode: str, options: dict[str, Any]) -> None:
    with pytest.raises((LookupError, ValueError, TypeError)):
        path.open(mode, **options)

    assert (path.told, path.content, path.state) == ([], HELLO, None)


def test_a_line_buffer_in_binary_mode_is_warned_of_as_by_open(path: OnePath, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning) as theirs:
        (tmp_path / "file").open("rb", 1).close()
    with pytest.warns(RuntimeWarning) as ours:
        path.open("rb", 1).close()

    assert [str(warning.message) for warning in ours] == [str(warning.message) for warning in theirs]


def test_a_line_buffered_file_is_seen_line_by_line(path: OnePath) -> None:
    with path.open("a", 1) as file, path.open("rb", 0) as reader:
        file.write("!")
        assert reader.read() == b"hello"
        file.write("\n?")
        assert reader.read() == b"!\n?"


def test_a_text_is_read_back_as_it_was_written(path: OnePath) -> None:
    lines = [f"{number} größer\n" for number in range(20_000)]
    with path.open("w", encoding="utf-16") as file:
        file.writelines(lines)
    with path.open(encoding="utf-16") as file:
        assert list(file) == lines


def test_damage_that_is_met_on_the_way_is_raised_through_the_wrappers(objects: Kept) -> None:
    content = write_stream(objects, [bytes(range(256)) * 1024])
    path = OnePath(objects, content)
    objects.lose(content.where)

    with path.open("rb") as reader, pytest.raises(Damaged):
        reader.read()
    with pytest.raises(Damaged), path.open("r+b") as writer:
        writer.write(b"x")

    assert (path.told, path.content) == ([], content)
