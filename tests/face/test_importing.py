"""A real folder is taken in as it is, and whatever a root cannot hold is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from folder import snapshot

import freehold
from freehold import Conflict, Files, Host, PathRefused, Refused, Run
from freehold.schema.skipped import Reason
from freehold.storage.clock import Clock


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with freehold.open(tmp_path / "runs") as host:
        yield host


@pytest.fixture
def run(host: Host) -> Iterator[Run]:
    with host.create("a") as run:
        yield run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "src" / "empty").mkdir(parents=True)
    (top / "src" / "a.py").write_bytes(b"print(1)\n")
    (top / "large").write_bytes(bytes(range(256)) * 1024)
    (top / "script").write_bytes(b"#!/bin/sh\n")
    (top / "script").chmod(0o755)
    (top / "link").symlink_to("src/a.py")
    (top / "dangling").symlink_to("nowhere")
    return top


def paths(run: Run) -> list[str]:
    return list(run.files.glob("**/*"))


ALL = ["dangling", "large", "link", "script", "src", "src/a.py", "src/empty"]


def test_a_folder_is_taken_in_as_it_is(run: Run, folder: Path) -> None:
    before = snapshot(folder)

    effect = run.import_tree(folder)

    assert (effect.kind, effect.name, effect.complete, list(effect.skipped)) == ("publish", "import", True, [])
    assert [(change.path, change.kind) for change in effect.changes] == [(path, "added") for path in ALL if path != "src"]
    assert paths(run) == ALL
    assert run.files.read_bytes("large") == (folder / "large").read_bytes()
    assert run.files.stat("script").st_mode == (folder / "script").stat().st_mode
    assert (run.files.readlink("link"), run.files.readlink("dangling")) == ("src/a.py", "nowhere")
    assert snapshot(folder) == before
    run.verify()


def test_a_folder_that_has_not_changed_gives_the_same_root_and_no_change(run: Run, folder: Path) -> None:
    first = run.import_tree(folder)
    again = run.import_tree(folder)

    assert (again.root, list(again.changes), again.data) == (first.root, [], {"changes": 0})


class Later(Clock):
    """A clock that is so late that what was just written counts as old."""

    def now_ms(self) -> int:
        return super().now_ms() + 60_000


def test_an_import_that_finds_only_modes_changed_changes_them(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.importing.Clock", Later)
    first = run.import_tree(folder)
    again = run.import_tree(folder)  # now what the files hold is known without reading them
    paths = [path for path in run.files.glob("**/*") if not run.files.is_symlink(path)]

    def close(files: Files) -> None:
        for path in paths:
            files.chmod(path, 0o700 if files.is_dir(path) else 0o600)

    assert run.publish("close", close).root != again.root == first.root
    assert run.import_tree(folder).root == first.root


def test_what_changed_is_replaced_and_what_else_is_there_stays(run: Run, folder: Path) -> None:
    run.publish("mine", lambda files: files.write_text("mine", "1"))
    run.import_tree(folder)
    (folder / "src" / "a.py").write_bytes(b"print(2)\n")
    (folder / "link").unlink()
    (folder / "link").write_bytes(b"a file now")
    (folder / "script").chmod(0o644)

    effect = run.import_tree(folder)

    assert [(change.path, change.kind) for change in effect.changes] == [("link", "changed"), ("script", "mode"), ("src/a.py", "changed")]
    assert run.files.read_text("mine") == "1"


def test_it_is_put_beneath_a_path_whose_folders_are_made(run: Run, folder: Path) -> None:
    effect = run.import_tree(folder / "src", "vendor/lib")

    assert [change.path for change in effect.changes] == ["vendor/lib/a.py", "vendor/lib/empty"]


def test_what_is_ignored_is_not_taken_and_no_loss(run: Run, folder: Path) -> None:
    effect = run.import_tree(folder, ignore=["*.py", "/large", "empty/"])

    assert effect.complete
    assert paths(run) == ["dangling", "link", "script", "src"]


def test_what_cannot_be_held_is_listed_and_stands_in_the_journal(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "con.txt").touch()
    (folder / "SCRIPT").touch()

    effect = run.import_tree(folder)

    found = [(skipped.path, skipped.reason) for skipped in effect.skipped]
    assert found == [("con.txt", Reason.UNPORTABLE), ("fifo", Reason.FIFO), ("script", Reason.COLLISION)]
    assert not effect.complete
    assert effect.data == {"changes": 6, "skipped": [[path, str(reason)] for path, reason in found], "more": 0}
    assert next(run.history(reverse=True)).data == effect.data
    run.verify()


@pytest.mark.parametrize(
    ("name", "count", "into", "reason"), [("d", 256, "x", Reason.TOO_DEEP), ("n" * 254, 16, "x" * 17, Reason.PATH_TOO_LONG)]
)
def test_what_would_be_too_deep_or_too_long_where_it_is_taken_is_left_out_so_that_everything_can_be_checked_out(
    run: Run, tmp_path: Path, name: str, count: int, into: str, reason: Reason
) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for each in ["top", *[name] * count]:
        os.mkdir(each, dir_fd=fd)
        inner = os.open(each, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)

    assert run.import_tree(tmp_path / "top").complete
    effect = run.import_tree(tmp_path / "top", into)

    assert [(each.parts, each.reason) for each in effect.skipped] == [((name,) * count, reason)]
    with run.checkout() as checkout:
        assert (checkout.path / into / name).is_dir()


def test_of_many_skipped_paths_the_first_thousand_are_listed(run: Run, tmp_path: Path) -> None:
    top = tmp_path / "many"
    top.mkdir()
    for number in range(1_005):
        (top / f"f{number:04}.").touch()

    effect = run.import_tree(top)

    assert (len(effect.skipped), len(effect.data["skipped"]), effect.data["more"], effect.data["changes"]) == (1_005, 1_000, 5, 0)
    run.verify()


def by_block(run: Run, folder: Path) -> None:
    with run.publish("in") as files:
        files.import_tree(folder)


def by_transaction(run: Run, folder: Path) -> None:
    with run.transaction() as tx:
        tx.files.import_tree(folder)


WAYS = [
    lambda run, folder: run.import_tree(folder),
    by_block,
    lambda run, folder: run.publish("in", lambda files: files.import_tree(folder)),
    by_transaction,
    lambda run, folder: run.transact(lambda tx: tx.files.import_tree(folder).ignored),
]


@pytest.mark.parametrize("way", WAYS, ids=["import", "block", "function", "transaction", "turn"])
def test_a_skipped_path_with_a_secret_in_it_is_counted_and_not_shown(
    tmp_path: Path, folder: Path, way: Callable[[Run, Path], object]
) -> None:
    os.mkfifo(folder / "hunter22")
    with freehold.open(tmp_path / "runs", secrets={"pass": "hunter22"}) as host, host.create("s") as run:
        way(run, folder)
        event = next(run.history(reverse=True))
        assert event.data["skipped"] == [[None, "fifo"]]
        assert b"hunter22" not in run.path.read_bytes() + Path(f"{run.path}-wal").read_bytes()


@pytest.mark.parametrize("way", WAYS, ids=["import", "block", "function", "transaction", "turn"])
def test_what_tells_a_secret_in_its_path_or_as_a_link_is_not_taken(
    tmp_path: Path, folder: Path, way: Callable[[Run, Path], object]
) -> None:
    (folder / "hunter22.txt").touch()
    (folder / "of hunter22" / "deep").mkdir(parents=True)
    os.mkfifo(folder / "of hunter22" / "fifo")
    (folder / "src" / "says").symlink_to("../hunter22")
    (folder / "AKIAIOSFODNN7EXAMPLE").touch()
    (folder / "aside").mkdir()
    (folder / "aside" / "x").touch()
    with freehold.open(tmp_path / "runs", secrets={"pass": "hunter22", "way": "aside/x"}) as host, host.create("s") as run:
        way(run, folder)
        assert paths(run) == sorted([*ALL, "aside"])
        assert next(run.history(reverse=True)).data["skipped"] == [[None, "secret"]] * 4 + [["src/says", "secret"]]
        stored = run.path.read_bytes() + Path(f"{run.path}-wal").read_bytes()
        assert not [secret for secret in (b"hunter22", b"AKIAIOSFODNN7EXAMPLE", b"aside/x") if secret in stored]
        run.verify()
        again = run.import_tree(folder, "again")
        assert [(each.path, each.detail) for each in again.skipped if each.reason is Reason.SECRET][1:] == [
            ("aside/x", "way"),
            ("hunter22.txt", "pass"),
            ("of hunter22", "pass"),
            ("src/says", "pass"),
        ]


@pytest.mark.parametrize("there", ["a folder", "a file"])
def test_a_folder_never_replaces_a_file_nor_the_other_way_round(run: Run, folder: Path, there: str) -> None:
    if there == "a folder":
        run.publish("before", lambda files: files.mkdir("large"))
    else:
        run.publish("before", lambda files: files.write_text("src", "a file"))
    root = run.files.root

    with pytest.raises(FileExistsError) as caught:
        run.import_tree(folder)

    assert caught.value.filename == ("large" if there == "a folder" else "src")
    assert run.files.root == root
    assert next(run.history(reverse=True)).data == {"failed": "FileExistsError", "errno": "EEXIST", "path": caught.value.filename}


def test_a_link_in_the_workspace_is_never_written_through(run: Run, folder: Path) -> None:
    def plant(files: freehold.Files) -> None:
        files.mkdir("elsewhere")
        files.symlink("src", "elsewhere")

    run.publish("plant", plant)
    root = run.files.root

    with pytest.raises(FileExistsError):
        run.import_tree(folder)

    assert run.files.root == root
    assert list(run.files.iterdir("elsewhere")) == []


def test_a_name_that_another_one_there_would_be_taken_for_is_left_out_and_all_else_taken(run: Run, folder: Path) -> None:
    def before(files: freehold.Files) -> None:
        files.write_text("SCRIPT", "1")
        files.mkdir("SRC")
        files.write_text("Link", "2")

    run.publish("before", before)
    (folder / "LINK").touch()
    (folder / "Link").write_text("3")

    effect = run.import_tree(folder)

    found = [(skipped.path, skipped.reason, skipped.detail) for skipped in effect.skipped]
    collision = Reason.COLLISION
    assert found == [("LINK", collision, "Link"), ("link", collision, "Link"), ("script", collision, "SCRIPT"), ("src", collision, "SRC")]
    assert paths(run) == ["Link", "SCRIPT", "SRC", "dangling", "large"]
    assert run.files.read_text("Link") == "3"
    assert effect.data["skipped"] == [[path, "collision"] for path, _, _ in found]
    run.verify()


def test_a_twin_that_an_import_met_must_still_be_there_at_the_end_of_its_block(run: Run, folder: Path) -> None:
    run.publish("before", lambda files: files.write_text("SCRIPT", "1"))

    with pytest.raises(Conflict) as caught, run.publish("in") as files:
        files.import_tree(folder)
        run.publish("theirs", lambda theirs: theirs.remove("SCRIPT"))

    assert caught.value.details["paths"] == ["SCRIPT"]


def test_a_directory_to_import_into_is_refused_where_its_twin_stands(run: Run, folder: Path) -> None:
    run.publish("before", lambda files: files.mkdir("SRC"))
    root = run.files.root

    with pytest.raises(PathRefused):
        run.import_tree(folder, "src/in")

    assert run.files.root == root


@pytest.mark.parametrize(("make", "kind"), [("nothing", FileNotFoundError), ("a file", NotADirectoryError)])
def test_what_is_no_folder_is_refused_as_python_does(run: Run, tmp_path: Path, make: str, kind: type[OSError]) -> None:
    top = tmp_path / "top"
    if make == "a file":
        top.touch()
    root = run.files.root

    with pytest.raises(kind):
        run.import_tree(top)

    assert run.files.root == root


@pytest.mark.parametrize("ignore", ["*.py", b"x", [1], 5])
def test_patterns_that_are_none_are_refused(run: Run, folder: Path, ignore: object) -> None:
    with pytest.raises(Refused) as caught:
        run.import_tree(folder, ignore=ignore)  # type: ignore[arg-type]

    assert caught.value.code == "bad_option"
    assert run.info.events == 1


def test_the_folder_of_the_runs_itself_is_taken_without_the_run_that_is_open(run: Run) -> None:
    effect = run.import_tree(run.path.parent)

    assert {skipped.reason for skipped in effect.skipped} == {Reason.RUNS_FOLDER}
    assert "a.sqlite" not in paths(run)
    run.append("still", 1)


def test_an_import_inside_a_publish_is_one_event_with_what_else_it_does(run: Run, folder: Path) -> None:
    def work(files: freehold.Files) -> int:
        report = files.import_tree(folder, "in")
        files.remove("in/large")
        return len(report.skipped)

    effect = run.publish("both", work)

    assert (effect.value, run.files.exists("in/large"), run.files.exists("in/script"), run.info.events) == (0, False, True, 2)


@pytest.mark.parametrize(
    ("theirs", "path"),
    [
        (lambda files: files.write_text("src/a.py", "other"), "src/a.py"),
        (lambda files: files.remove("src/a.py"), "src/a.py"),
        (lambda files: files.rmdir("src/empty"), "src/empty"),
        (lambda files: files.chmod("src/empty", 0o700), "src/empty"),
        (lambda files: files.remove("link"), "link"),
        (lambda files: files.chmod("script", 0o644), "script"),
        (lambda files: files.write_text("src/other", "1"), None),
    ],
)
def test_what_an_import_found_equal_must_still_be_so_at_the_end_of_its_block(
    run: Run, folder: Path, theirs: Callable[[freehold.Files], object], path: str | None
) -> None:
    run.import_tree(folder)

    def block() -> None:
        with run.publish("in") as files:
            files.import_tree(folder)
            run.publish("theirs", theirs)

    if path is None:
        block()
        assert {"src/a.py", "src/other"} <= set(paths(run))
    else:
        with pytest.raises(Conflict) as caught:
            block()
        assert caught.value.details["paths"] == [path]
    run.verify()


def test_a_large_file_is_never_whole_in_memory(run: Run, tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    with (top / "sparse").open("wb") as file:
        file.truncate(2**29)
    resource = __import__("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    run.import_tree(top)

    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert run.files.stat("sparse").st_size == 2**29
    assert grown < 2**27, f"grew by {grown:,} bytes on {sys.platform}"


def test_a_request_id_stands_for_where_a_folder_is_put_and_what_is_ignored(run: Run, folder: Path) -> None:
    first = run.import_tree(folder, "in", ignore=["*.py"], request_id="i")

    assert run.import_tree(folder, "./in/", ignore=iter(["*.py"]), request_id="i") == first
    others = [("out", ["*.py"], "import"), ("in", [], "import"), ("in", ["*.py", "x"], "import"), ("in", ["*.py"], "other")]
    for into, ignore, name in others:
        with pytest.raises(Refused) as caught:
            run.import_tree(folder, into, ignore=ignore, name=name, request_id="i")
        assert caught.value.code == "request_conflict"
    with pytest.raises(Refused), run.publish("import", request_id="i"):
        pass
    assert run.info.events == 2
    assert run.import_tree(folder, ignore=["\udcff"], request_id="j").complete


def test_of_a_long_list_a_repeated_request_has_what_the_journal_has(tmp_path: Path) -> None:
    top = tmp_path / "many"
    top.mkdir()
    os.mkfifo(top / "a hunter22")
    for number in range(1_005):
        (top / f"f{number:04}.").touch()
    with freehold.open(tmp_path / "runs", secrets={"pass": "hunter22"}) as host, host.create("s") as run:
        first = run.import_tree(top, request_id="i")
        again = run.import_tree(top, request_id="i")

    assert (len(first.skipped), first.skipped[1].detail != "") == (1_006, True)
    assert [(each.path, each.reason, each.detail) for each in again.skipped] == [
        ("" if each.path == "a hunter22" else each.path, each.reason, "") for each in first.skipped[:1_000]
    ]
    assert not again.complete


def test_an_import_that_is_asked_for_again_tells_what_it_had_skipped(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    first = run.import_tree(folder, request_id="i")

    again = run.import_tree(folder, request_id="i")

    assert (again, list(again.changes), again.skipped, again.complete) == (first, list(first.changes), first.skipped, False)


@pytest.mark.parametrize("relative", [False, True])
def test_a_folder_of_this_machine_is_not_named_in_the_journal(
    run: Run, tmp_path: Path, relative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        run.import_tree("nothing" if relative else tmp_path / "nothing")

    assert Path(caught.value.filename).name == "nothing"
    assert next(run.history(reverse=True)).data == {"failed": "FileNotFoundError", "errno": "ENOENT", "path": None}
