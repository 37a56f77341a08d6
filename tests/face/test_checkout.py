"""A checkout is the root, byte for byte, and nothing else is touched."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from folder import run_files, snapshot

import freehold
from freehold import Event, Files, Host, PathRefused, Refused, Run, RunNotFound
from freehold.checkout import Checkout, Replace


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path / "runs") as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


def furnish(files: Files) -> None:
    files.mkdir("src/empty", 0o700, parents=True)
    files.write_bytes("src/a.py", b"print(1)\n")
    files.chmod("src/a.py", 0o755)
    files.write_bytes("large", bytes(range(256)) * 1024)
    files.symlink("link", "src/a.py")
    files.symlink("out", "/etc/hostname")


@pytest.fixture
def event(run: Run) -> Event:
    return run.publish("furnish", furnish)


def look(top: Path) -> dict[str, object]:
    """Return what is in a real folder, links not followed."""
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder, name)
            told = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path.relative_to(top))] = (told, 0o777 if path.is_symlink() else path.stat().st_mode & 0o777)
    return found


WHOLE = {
    "src": (None, 0o755),
    "src/empty": (None, 0o700),
    "src/a.py": (b"print(1)\n", 0o755),
    "large": (bytes(range(256)) * 1024, 0o644),
    "link": ("src/a.py", 0o777),
    "out": ("/etc/hostname", 0o777),
}


@pytest.mark.parametrize("by", ["lease", "view beside", "view of a closed run"])
def test_a_new_folder_is_the_root(host: Host, run: Run, event: Event, tmp_path: Path, by: str) -> None:
    reader: freehold.RunView = run
    if by != "lease":
        reader = freehold.view(run.path)
    if by == "view of a closed run":
        host.close()

    done = reader.checkout(tmp_path / "out")

    assert look(tmp_path / "out") == WHOLE
    assert (done.path, done.root, done.written, done.kept, done.removed) == (tmp_path / "out", event.root, 6, 0, 0)
    assert os.fspath(done) == str(tmp_path / "out")
    done.close()
    assert (tmp_path / "out").is_dir()


def test_a_moment_is_checked_out_and_what_was_before_it(run: Run, event: Event, tmp_path: Path) -> None:
    later = run.publish("later", lambda files: files.remove("large"))

    run.checkout(tmp_path / "at", at=event)
    run.checkout(tmp_path / "before", before=later)
    run.checkout(tmp_path / "root", at=event.root[:12])
    run.checkout(tmp_path / "now")
    run.checkout(tmp_path / "nothing", at=0)

    assert look(tmp_path / "at") == look(tmp_path / "before") == look(tmp_path / "root") == WHOLE
    assert look(tmp_path / "now").keys() == WHOLE.keys() - {"large"}
    assert look(tmp_path / "nothing") == {}


def test_without_a_folder_it_is_there_for_a_while(run: Run, event: Event) -> None:
    with run.checkout() as done:
        assert look(done.path) == WHOLE
        assert done.path.stat().st_mode & 0o077 == 0 or done.path.parent.stat().st_mode & 0o077 == 0
        (done.path / "mine").touch()

    assert not done.path.exists()
    done.close()


def test_a_temporary_one_that_was_forgotten_is_removed_with_a_warning(run: Run, event: Event) -> None:
    held = [run.checkout()]
    lost = held[0].path

    with pytest.warns(ResourceWarning):
        held.clear()

    assert not lost.exists()


def test_a_folder_that_holds_something_is_left_as_it_is(run: Run, event: Event, tmp_path: Path) -> None:
    top = tmp_path / "out"
    top.mkdir()
    (top / "mine").write_text("important")
    before = snapshot(top)

    with pytest.raises(FileExistsError):
        run.checkout(top)

    assert snapshot(top) == before


def test_changed_replaces_what_differs_and_leaves_the_rest(run: Run, event: Event, tmp_path: Path) -> None:
    top = tmp_path / "out"
    run.checkout(top)
    (top / "mine").write_text("important")
    (top / "src" / "a.py").write_text("changed")
    inode = (top / "large").stat().st_ino

    done = run.checkout(top, replace="changed")

    assert look(top) == WHOLE | {"mine": (b"important", (top / "mine").stat().st_mode & 0o777)}
    assert (done.written, done.removed, (top / "large").stat().st_ino) == (1, 0, inode)


def test_always_makes_it_the_root_but_for_what_no_root_can_hold_and_what_is_ignored(run: Run, event: Event, tmp_path: Path) -> None:
    top = tmp_path / "out"
    run.checkout(top)
    (top / "extra").write_text("gone")
    (top / ".git").mkdir()
    (top / ".git" / "config").write_text("kept")
    os.mkfifo(top / "fifo")
    (top / "con.txt").write_text("kept")

    done = run.checkout(top, replace="always", ignore=[".git"])

    assert look(top / ".git").keys() == {"config"}
    assert {path.name for path in top.iterdir()} == {"src", "large", "link", "out", ".git", "fifo", "con.txt"}
    assert (done.removed, sorted(done.left_alone)) == (1, [".git", "con.txt", "fifo"])


@pytest.mark.parametrize("replace", ["changed", "always"])
def test_nothing_is_written_through_a_link_that_stands_in_the_way(run: Run, event: Event, tmp_path: Path, replace: str) -> None:
    top, outside = tmp_path / "out", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    (outside / "a.py").write_text("important")
    (top / "src").symlink_to(outside)
    before = snapshot(outside)

    if replace == "changed":
        with pytest.raises(OSError, match="symbolic links") as caught:
            run.checkout(top, replace="changed")
        assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, "src")
        assert (top / "src").readlink() == outside
    else:
        run.checkout(top, replace="always")
        assert look(top) == WHOLE

    assert snapshot(outside) == before


@pytest.mark.parametrize("replace", ["ever", None, 1])
def test_another_word_is_refused(run: Run, event: Event, tmp_path: Path, replace: object) -> None:
    with pytest.raises(Refused) as caught:
        run.checkout(tmp_path / "out", replace=replace)  # type: ignore[arg-type]

    assert caught.value.code == "bad_option"
    assert not (tmp_path / "out").exists()


def test_a_moment_that_is_none_makes_nothing(run: Run, event: Event, tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        run.checkout(tmp_path / "out", at="deadbeef0")

    assert caught.value.code == "bad_position"
    assert not (tmp_path / "out").exists()


def test_a_run_that_is_not_there_cannot_be_checked_out(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound):
        freehold.view(tmp_path / "none.sqlite").checkout(tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_what_is_checked_out_and_taken_in_again_is_the_same_root(host: Host, run: Run, event: Event, tmp_path: Path) -> None:
    run.checkout(tmp_path / "out")
    with host.create("b") as other:
        assert other.import_tree(tmp_path / "out").root == event.root


@pytest.mark.parametrize("replace", ["changed", "always"])
def test_what_is_to_be_ignored_is_left_as_it_is(run: Run, event: Event, tmp_path: Path, replace: Replace) -> None:
    top = tmp_path / "out"
    run.checkout(top)
    (top / "large").write_text("mine")
    (top / "src" / "a.py").write_text("changed")
    (top / "src" / "empty").chmod(0o755)
    (top / "link").unlink()
    (top / "out").unlink()
    (top / "out").mkdir()
    (top / "out" / "mine").touch()

    done = run.checkout(top, replace=replace, ignore=["large", "empty/", "link", "out"])

    mine = {"large": (b"mine", 0o644), "src/empty": (None, 0o755), "out": (None, 0o755), "out/mine": (b"", 0o644)}
    assert look(top) == WHOLE | mine
    assert (done.written, done.left_alone) == (2, ("large", "out", "src/empty"))


@pytest.mark.parametrize("folder", ["out", None])
def test_there_is_nothing_to_ignore_where_nothing_may_be_replaced(run: Run, event: Event, tmp_path: Path, folder: str | None) -> None:
    with pytest.raises(Refused) as caught:
        run.checkout(None if folder is None else tmp_path / folder, ignore=["x"])

    assert caught.value.code == "bad_option"
    with pytest.raises(Refused):
        run.checkout(replace="always", ignore=["x"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("replace", ["changed", "always"])
def test_a_file_with_a_bit_that_no_root_holds_is_another_one(run: Run, event: Event, tmp_path: Path, replace: Replace) -> None:
    top = tmp_path / "out"
    run.checkout(top)
    for path, bit in {"src/a.py": 0o4000, "large": 0o2000, "src": 0o2000}.items():
        (top / path).chmod((top / path).stat().st_mode | bit)

    assert run.checkout(top, replace=replace).written == 2
    assert [oct((top / path).stat().st_mode) for path in ("src/a.py", "large", "src")] == ["0o100755", "0o100644", "0o42755"]


@pytest.mark.parametrize("replace", ["changed", "always"])
def test_a_folder_that_is_only_called_like_an_unfinished_checkout_is_nobody_s_to_sweep(run: Run, tmp_path: Path, replace: Replace) -> None:
    name = ".freehold-1-1.staging"
    run.publish("own", lambda files: files.mkdir(name, 0o700))
    top = tmp_path / "out"
    run.checkout(top)
    for mine in (top / name, tmp_path / name, top / ".freehold-1-2.staging"):
        mine.mkdir(0o700, exist_ok=True)
        (mine / "mine").touch()

    done = run.checkout(top, replace=replace, ignore=["mine"])
    run.checkout(tmp_path / "other")

    assert done.left_alone == ((f"{name}/mine", ".freehold-1-2.staging") if replace == "always" else ())
    assert (tmp_path / name / "mine").exists()
    assert look(top).keys() == {name, f"{name}/mine", ".freehold-1-2.staging", ".freehold-1-2.staging/mine"}


# Restoring


def test_everything_is_restored_to_a_moment(run: Run, event: Event) -> None:
    def ruin(files: Files) -> None:
        files.rmtree("src")
        files.write_text("large", "small")
        files.write_text("new", "1")

    run.publish("ruin", ruin)
    effect = run.restore(event)

    assert (effect.name, effect.root) == ("restore", event.root)
    assert {(change.path, change.kind) for change in effect.changes} == {
        ("large", "changed"),
        ("new", "removed"),
        ("src/a.py", "added"),
        ("src/empty", "added"),
    }
    run.verify()


def test_a_path_is_restored_and_all_else_stays(run: Run, event: Event) -> None:
    def ruin(files: Files) -> None:
        files.rmtree("src")
        files.write_text("new", "1")

    run.publish("ruin", ruin)
    effect = run.restore(event, "src/a.py")

    assert [change.path for change in effect.changes] == ["src/a.py"]
    assert run.files.stat("src/a.py").st_mode & 0o777 == 0o755
    assert not run.files.exists("src/empty")
    assert run.files.exists("new")


def through_a_link(files: Files) -> None:
    files.mkdir("a")
    files.write_text("a/f", "old")
    files.mkdir("b1")
    files.write_text("b1/f", "b1")
    files.symlink("l", "a")
    files.symlink("f", "a/f")


@pytest.mark.parametrize(
    ("since", "path", "changed"),
    [
        (lambda files: files.write_text("a/f", "new"), "l/f", ["a/f"]),
        (lambda files: files.write_text("a/f", "new"), "a/f", ["a/f"]),
        (lambda files: files.rmtree("a"), "a/f", ["a/f"]),
        (lambda files: files.rmtree("a"), "l/f", ["a/f"]),
        (lambda files: (files.remove("f"), files.write_text("a/f", "new")), "f", ["f"]),
        (lambda files: (files.remove("l"), files.mkdir("l"), files.write_text("l/f", "L")), "l/f", None),
        (lambda files: files.remove("l"), "l/f", None),
        (lambda files: (files.remove("l"), files.symlink("l", "b1")), "l/f", None),
        (lambda files: (files.remove("l"), files.symlink("l", "../x")), "l/f", None),
        (lambda files: (files.rmtree("a"), files.symlink("a", "b1")), "a/f", None),
        (lambda files: (files.rmtree("a"), files.symlink("a", "b1")), "l/f", None),
        (lambda files: (files.rmtree("a"), files.symlink("a", "nowhere")), "a/f", None),
    ],
)
def test_a_restored_path_is_what_it_was_and_nothing_else_changes_or_it_is_refused(
    run: Run, since: Callable[[Files], object], path: str, changed: list[str] | None
) -> None:
    then = run.publish("links", through_a_link)
    run.publish("since", since)
    before = run.files.root

    if changed is None:
        with pytest.raises(PathRefused):
            run.restore(then, path)
        assert run.files.root == before
    else:
        assert [change.path for change in run.restore(then, path).changes] == changed
        if path != "f":
            assert run.files.read_text(path) == run.snapshot(then).read_text(path)
        assert run.files.is_symlink("f")
    run.verify()


def test_what_was_not_there_then_cannot_be_restored(run: Run, event: Event) -> None:
    root = run.files.root

    with pytest.raises(FileNotFoundError):
        run.restore(1, "src")
    with pytest.raises(Refused) as caught:
        run.restore("deadbeef0")
    with pytest.raises(PathRefused):
        run.restore(event, "../src")

    assert caught.value.code == "bad_position"
    assert run.files.root == root


def test_a_folder_takes_the_place_of_what_stands_there_now(run: Run, event: Event) -> None:
    def ruin(files: Files) -> None:
        files.rmtree("src")
        files.write_text("src", "a file now")

    run.publish("ruin", ruin)
    assert run.restore(event, "src").root == event.root


def test_a_request_restores_once(run: Run, event: Event) -> None:
    run.publish("ruin", lambda files: files.remove("large"))
    first = run.restore(event, request_id="r")
    run.publish("ruin", lambda files: files.remove("large"))

    again = run.restore(event, request_id="r")

    assert (again, [change.path for change in again.changes]) == (first, ["large"])
    assert not run.files.exists("large")


def test_a_request_id_stands_for_the_root_and_the_path_that_are_restored(run: Run, event: Event) -> None:
    run.publish("ruin", lambda files: files.write_text("large", "ruined"))
    first = run.restore(event, "large", request_id="r")

    assert run.restore(event.root, "./large", request_id="r") == first
    for at, path, name in ((event.seq + 1, "large", "restore"), (event, ".", "restore"), (event, "large", "other")):
        with pytest.raises(Refused) as caught:
            run.restore(at, path, name=name, request_id="r")
        assert caught.value.code == "request_conflict"
    assert run.files.root == event.root


def test_only_who_has_something_to_compare_keeps_a_stat_cache(run: Run, event: Event, tmp_path: Path) -> None:
    before = run_files(run.path.parent)

    run.checkout(tmp_path / "out")

    assert run_files(run.path.parent) == before


# What stands under a name of the root's own


def write(*paths: str) -> Callable[[Files], None]:
    """Return what writes these files, with the directories that they stand in."""

    def work(files: Files) -> None:
        for path in paths:
            files.mkdir(str(Path(path).parent), parents=True, exist_ok=True)
            files.write_text(path, "root")

    return work


def in_place(run: Run, top: Path, replace: Replace = "always") -> Checkout:
    """Check out, and see that every path of the root is there as the root says."""
    done = run.checkout(top, replace=replace)
    with run.checkout() as right:
        assert look(top).items() >= look(right.path).items()
    return done


def test_a_name_that_a_system_takes_for_the_root_s_own_does_not_keep_it_from_its_place(run: Run, tmp_path: Path) -> None:
    run.publish("own", write("a", "d/x"))
    top = tmp_path / "out"
    (top / "D").mkdir(parents=True)
    (top / "d").mkdir()
    for path, what in {"A": "other", "a": "old", "D/u": "other", "d/old": "old"}.items():
        (top / path).write_text(what)

    assert in_place(run, top).left_alone == ()
    assert look(top).keys() == {"a", "d", "d/x"}


def test_of_names_that_the_root_has_not_the_one_that_no_root_could_hold_beside_the_first_is_left_alone(run: Run, tmp_path: Path) -> None:
    run.publish("own", write("Read"))
    top = tmp_path / "out"
    top.mkdir()
    for name in ("READ", "Read", "read", "X", "x"):
        (top / name).write_text(name)

    assert in_place(run, top).left_alone == ("read", "x")
    assert look(top).keys() == {"Read", "read", "x"}


def test_a_folder_of_the_root_s_own_is_looked_into_whatever_stands_beside_it(run: Run, tmp_path: Path) -> None:
    run.publish("own", write("d/x"))
    top = tmp_path / "out"
    (top / "D").mkdir(parents=True)
    (top / "d").mkdir()
    os.mkfifo(top / "d" / "fifo")
    (top / "d" / "old").touch()

    assert in_place(run, top).left_alone == ("d/fifo",)
    assert {path.name for path in (top / "d").iterdir()} == {"fifo", "x"}


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_no_root_could_hold_goes_where_it_stands_in_the_way_of_the_root_s_own(run: Run, tmp_path: Path, kind: str) -> None:
    make = {
        "file": write("x"),
        "directory": lambda files: files.mkdir("x"),
        "link": lambda files: files.symlink("x", "nowhere"),
    }
    run.publish("own", make[kind])
    top = tmp_path / "out"
    top.mkdir()
    os.mkfifo(top / "x")
    os.mkfifo(top / "y")

    with pytest.raises(FileExistsError) as caught:
        run.checkout(top, replace="changed")
    assert caught.value.filename == "x"
    done = run.checkout(top, replace="always")

    assert (done.left_alone, done.written) == (("y",), 1)
    assert not (top / "x").is_fifo()
    assert (top / "y").is_fifo()


def test_a_folder_that_holds_what_no_root_could_does_not_become_a_file(run: Run, tmp_path: Path) -> None:
    run.publish("own", write("x"))
    top = tmp_path / "out"
    (top / "x").mkdir(parents=True)
    os.mkfifo(top / "x" / "fifo")

    with pytest.raises(OSError, match="x") as caught:
        run.checkout(top, replace="always")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOTEMPTY, "x")
    assert (top / "x" / "fifo").is_fifo()
