"""Files are what a real folder is: whatever is done to both, in whatever order, does the same, fails the same and leaves the same tree.

On purpose a workspace differs in this: a new file appears at its close, and what was written is read by others from then on; links never
lead out of it; two names that a system ignoring case would take for one are not both there. What a real folder cannot say (a publish that
is undone, a conflict, an earlier moment) is compared with a twin kept in a dictionary.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from deeds import Deed, Ours, Real, Steps, outcome, tree_of
from faulty import EIO, FULL, Disk, put_on
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from power import scratch
from trees import Tree, plant_tree, tree

import freehold
from freehold import Conflict, Crashed, Host, Run

READING = frozenset({"read_bytes", "read_text", "stat", "copy"})
"""What sees a file's content from a close on only."""

NAMES = ("a", "b", "c", "A")
PATHS = [
    *NAMES,
    *NAMES,
    *NAMES,
    *("/".join(two) for two in product(NAMES, repeat=2)),
    *("/".join(three) for three in product("abc", repeat=3)),
]
TARGETS = [*PATHS[:28], "../a", "../b", "../a/b", "../b/c", "a/", "../b/", "b/.", ".", "..", "a/../b"]
paths = st.sampled_from(PATHS)


@st.composite
def steps(draw: st.DrawFn) -> Steps:
    """Draw what is done with one open file."""
    chosen = draw(st.lists(st.sampled_from(list(STEPS)), max_size=5))
    return tuple((name, draw(STEPS[name])) for name in chosen)


@st.composite
def deeds(draw: st.DrawFn) -> list[Deed]:
    """Draw what is done to the files of one publish."""
    chosen = draw(st.lists(st.sampled_from(list(DEEDS)), max_size=9))
    return [(name, tuple(draw(each) for each in DEEDS[name])) for name in chosen]


contents = st.one_of(st.binary(max_size=4), st.sampled_from([129, 330, 70_000]).map(lambda size: b"line\r\n" * (size // 6)))
modes = st.sampled_from(["rb", "wb", "ab", "xb", "r+b", "w+b", "a+b", "x+b"])
flags = st.booleans()
slots = st.integers(0, 1)
STEPS: dict[str, st.SearchStrategy[Any]] = {
    "write": st.tuples(contents),
    "read": st.sampled_from([(), (7,)]),
    "seek": st.sampled_from([(0,), (3,), (300,), (-2,), (-2, 2), (1, 1), (0, 2), (0, 9)]),
    "truncate": st.sampled_from([(), (0,), (5,), (200,), (-1,)]),
    "tell": st.just(()),
}
# No pattern ends with a plain name: whether a link that leads nowhere is found by it, pathlib says one way before 3.13 and another since.
DEEDS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "write_bytes": (paths, contents),
    "write_text": (paths, st.text(max_size=9).filter(str.isprintable)),
    "mkdir": (paths, flags, flags),
    "opened": (paths, modes, steps()),
    "symlink": (paths, st.sampled_from(TARGETS)),
    "rename": (paths, paths),
    "copy": (paths, paths),
    "remove": (paths,),
    "rmdir": (paths,),
    "rmtree": (paths,),
    "chmod": (paths, st.sampled_from([0o700, 0o711, 0o750, 0o755, 0o777])),
    "touch": (paths, flags),
    "hold": (slots, paths, st.sampled_from(["rb", "r+b", "ab"])),
    "held_do": (slots, steps()),
    "let_go": (slots,),
    **dict.fromkeys(("read_bytes", "read_text", "exists", "is_file", "is_dir", "is_symlink", "readlink"), (paths,)),
    "stat": (paths, flags),
    **dict.fromkeys(("iterdir", "walk"), (st.sampled_from([*PATHS, ".", "."]),)),
    "glob": (st.sampled_from(["*", "*/*", "a/*", "**/[a]", "[ab]/?", "**/*", "*/", "a/**/[b]", "**/c/*", "[b]", "?/[a]"]),),
}
ends = st.sampled_from(["ok", "ok", "ok", "file error", "other error"])


class Folders(RuleBasedStateMachine):
    """A run and a real folder, changed together; each rule is one publish."""

    lived = 0

    @initialize()
    def begin(self) -> None:
        self.life = ExitStack()
        scratch_ = self.life.enter_context(scratch())
        self.root = scratch_ / "runs"
        self.real = Real(scratch_ / "far" / "down" / "real")
        self.real.top.mkdir(parents=True)
        self.real.top.chmod(0o755)
        self.disk = Disk()
        self.open_host()
        self.run: Run = self.host.create("a")
        self.moments: dict[int, Tree] = {1: {}}
        self.roots: dict[str, Tree] = {self.run.files.root: {}}
        self.requests = 0

    def teardown(self) -> None:
        try:
            for seq, twin in self.moments.items():
                assert tree_of(self.run.snapshot(seq)) == twin
            with self.run.checkout() as checkout:
                assert tree(Path(checkout)) == tree(self.real.top)
            self.run.verify()
            Folders.lived += 1
        finally:
            self.run.close()
            self.host.close()
            self.life.close()

    @rule(todo=deeds(), end=ends)
    def publish(self, todo: list[Deed], end: str) -> None:
        self.ended(end, lambda: self.run.publish("files", lambda files: self.both(files, todo, end)))

    @rule(todo=deeds(), end=ends)
    def publish_in_a_block(self, todo: list[Deed], end: str) -> None:
        def block() -> None:
            with self.run.publish("files") as files:
                self.both(files, todo, end)

        self.ended(end, block)

    @rule(first=deeds(), undone=deeds(), last=deeds())
    def transact_with_a_savepoint(self, first: list[Deed], undone: list[Deed], last: list[Deed]) -> None:
        with self.run.transaction(timeout=60) as tx:
            self.both(tx.files, first)
            self.moments[tx.append("between").seq] = tree(self.real.top)
            before = self.copy()
            with pytest.raises(ZeroDivisionError), tx.savepoint():
                self.both(tx.files, undone)
                tx.append("undone")
                raise ZeroDivisionError
            self.put_back(before)
            self.both(tx.files, last)
        self.note_now()

    @rule(todo=deeds())
    def meet_a_conflict(self, todo: list[Deed]) -> None:
        self.other("write_bytes", "met", b"0")
        before = self.copy()
        with pytest.raises(Conflict) as caught, self.run.publish("lost") as files:
            assert files.read_bytes("met") == b"0"
            self.both(files, todo)
            self.run.publish("other", lambda files: files.write_bytes("met", b"1"))
        assert caught.value.details["paths"] == ["met"]
        self.put_back(before)
        self.real.write_bytes("met", b"1")
        self.note_now()
        self.other("remove", "met")

    def other(self, *deed: Any) -> None:
        """Publish one deed of somebody else."""
        self.run.publish("other", lambda files: self.both(files, [(deed[0], deed[1:])]))
        self.note_now()

    @rule(todo=deeds())
    def repeat_a_request(self, todo: list[Deed]) -> None:
        self.requests += 1
        name = f"request {self.requests}"
        first = self.run.publish("files", lambda files: self.both(files, todo), request_id=name)
        self.note_now()
        again = self.run.publish("files", lambda files: files.write_bytes("lost", b""), request_id=name)
        assert (again.seq, list(again.changes)) == (first.seq, list(first.changes))

    @rule()
    def open_the_host_again(self) -> None:
        self.run.close()
        self.host.close()
        self.open_host()
        self.run = self.host.open("a")

    @rule(todo=deeds(), code=st.sampled_from([EIO, FULL]), nth=st.integers(1, 3))
    def lose_the_disk(self, todo: list[Deed], code: int, nth: int) -> None:
        before, events = self.copy(), self.run_length()
        fault = self.disk.arm("write", code=code, nth=nth)
        told = "yes"
        try:
            self.run.publish("files", lambda files: self.both(files, todo))
        except Crashed as crashed:
            told = crashed.executed
            self.put_back(before)
        self.disk.heal()
        assert told == ("no" if fault.fired else "yes")
        assert self.run_length() == events + (told == "yes")
        self.note_now()
        self.open_the_host_again()  # a run that crashes again and again is set aside

    @rule(index=st.integers(0, 1_000))
    def restore(self, index: int) -> None:
        seq, twin = list(self.moments.items())[index % len(self.moments)]
        shutil.rmtree(self.real.top)
        plant_tree(self.real.top, twin)
        self.run.restore(seq)
        self.note_now()

    @invariant()
    def both_trees_are_the_same(self) -> None:
        if hasattr(self, "run"):
            now = tree(self.real.top)
            assert tree_of(self.run.files) == now
            assert self.roots.setdefault(self.run.files.root, now) == now
            assert list(self.roots.values()).count(now) == 1

    def both(self, files: Any, todo: list[Deed], end: str = "ok") -> None:
        """Do it on both sides, and compare what each does."""
        ours, real = Ours(files), self.real
        for each in (*todo, ("let_go", (0,)), ("let_go", (1,))):
            if each[0] in READING and ours.held:
                continue  # of a file that is open, others read what was there at its last close
            if each[0] == "hold" and not real.exists(each[1][1]):
                continue  # here a new file appears at its close
            if each[0] == "glob" and real.leads_out():
                continue  # pathlib would look there
            mine = outcome(ours, each)
            if mine == ("refused",):
                assert real.may_be_refused(each), each
            elif each[0] in ("exists", "is_file", "is_dir") and real.leads_out():
                assert not mine[1] or mine == outcome(real, each), each
            else:
                assert mine == outcome(real, each), each
        if end == "file error":
            files.read_bytes("no such")
        elif end == "other error":
            raise ZeroDivisionError

    def ended(self, end: str, publish: Callable[[], object]) -> None:
        """Let a publish come to its end on both sides."""
        before, events, root = self.copy(), self.run_length(), self.run.files.root
        if end == "ok":
            publish()
        else:
            with pytest.raises(FileNotFoundError if end == "file error" else ZeroDivisionError):
                publish()
            self.put_back(before)
            assert self.run.files.root == root
        last = next(self.run.history(reverse=True))
        assert self.run_length() == events + (end != "other error")
        assert end != "file error" or last.data == {"failed": "FileNotFoundError", "errno": "ENOENT", "path": "no such"}
        self.note_now()

    def open_host(self) -> None:
        self.host: Host = freehold.open(self.root, timeout=60)
        put_on(self.disk, self.host)

    def run_length(self) -> int:
        return self.run.info.events

    def note_now(self) -> None:
        self.moments[self.run_length()] = tree(self.real.top)

    def copy(self) -> Path:
        kept = Path(self.life.enter_context(TemporaryDirectory(dir=self.root.parent))) / "kept"
        shutil.copytree(self.real.top, kept, symlinks=True)
        return kept

    def put_back(self, kept: Path) -> None:
        shutil.rmtree(self.real.top)
        shutil.copytree(kept, self.real.top, symlinks=True)


@pytest.fixture(autouse=True)
def _usual_permissions() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def live(lives: int, steps: int) -> None:
    """Let the two sides live so many lives of so many steps beside each other."""
    before = Folders.lived
    chosen = settings(max_examples=lives, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Folders, settings=chosen)
    assert Folders.lived - before >= lives


def test_files_are_what_a_real_folder_is() -> None:
    live(30, 8)


@pytest.mark.prove
@pytest.mark.parametrize("_part", range(4))
def test_files_are_what_a_real_folder_is_in_two_thousand_lives(_part: int) -> None:
    live(500, 15)
