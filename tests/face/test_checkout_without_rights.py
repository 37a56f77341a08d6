"""What a root names is put in its place also where its own user may not read, enter or change what is there."""

from __future__ import annotations

import os
from pathlib import Path

from nobody import NOBODY, as_nobody, needs_another_user, nobodys_folder

pytestmark = needs_another_user

BEGIN = """
import freehold
target = top / "target"
def told(replace, **more):
    try:
        done = run.checkout(target, replace=replace, **more)
        return done.written, done.kept, done.removed, done.left_alone
    except OSError as error:
        return type(error).__name__, error.filename
def right():
    with run.checkout() as checkout:
        return tree(target) == tree(checkout.path)
def written_out(*folders):
    run.publish("old", lambda files: [(files.mkdir(path), files.write_text(path + "/x", "x")) for path in folders])
    run.checkout(target)
with freehold.open(top / "runs") as host, host.create("r") as run:
"""


def tried(program: str, top: Path | None = None) -> list[str]:
    """Return what *program* prints, line by line; it has a run, and a target that is not there yet."""
    with nobodys_folder() as new:
        return as_nobody(top or new, BEGIN + "".join(f"    {line}\n" for line in program.splitlines()), needs="run").splitlines()


def test_a_file_that_cannot_be_read_is_replaced() -> None:
    program = """
run.publish("old", lambda files: (files.write_text("closed", "old"), files.chmod("closed", 0)))
run.checkout(target)
for replace in ("always", "changed"):
    run.publish("new", lambda files: (files.remove("closed"), files.write_text("closed", replace), files.chmod("closed", 0)))
    print(told(replace), right())
"""
    assert tried(program) == ["(1, 0, 0, ()) True"] * 2


def test_folders_that_cannot_be_read_or_entered_are_the_root_s_all_the_same() -> None:
    program = """
closed = {"none": 0, "none/below": 0o100, "enter": 0o100, "read": 0o400, "fixed": 0o500, "fixed/none": 0}
def furnish(files, text):
    for path in closed:
        files.mkdir(path, exist_ok=True)
        files.chmod(path, 0o700)
        files.write_text(path + "/x", text)
        files.mkdir(f"{path}/{text}")
def close(files):
    for path, mode in reversed(closed.items()):
        files.chmod(path, mode)
run.publish("old", lambda files: (furnish(files, "old"), close(files)))
run.checkout(target)
for replace in ("changed", "always"):
    print(told(replace), right())
run.publish("new", lambda files: (furnish(files, "new"), close(files)))
print(told("changed"))
print(told("always"), right())
run.publish("other modes", lambda files: [files.chmod(path, mode) for path, mode in zip(closed, reversed(closed.values()))])
print(told("changed"), right())
print(told("always"), right())
"""
    assert tried(program) == [
        *["(0, 18, 0, ()) True"] * 2,
        "(12, 12, 0, ())",
        "(0, 24, 0, ()) True",
        "(4, 20, 0, ()) True",
        "(0, 24, 0, ()) True",
    ]


def test_what_no_root_could_hold_stays_in_a_folder_that_cannot_be_entered_and_all_else_in_it_goes() -> None:
    program = """
written_out("d")
os.mkfifo(target / "d" / "fifo")
(target / "d" / "mine").touch()
(target / "d" / "gone").touch()
(target / "d").chmod(0)
print(told("always", ignore=["mine"]))
print(sorted(os.listdir(target / "d")))
"""
    assert tried(program) == ["(1, 1, 1, ('d/fifo', 'd/mine'))", "['fifo', 'mine', 'x']"]


def test_a_folder_that_may_not_be_changed_and_holds_what_is_left_alone_is_emptied_of_the_rest() -> None:
    program = """
written_out("d", "e", "e/f")
os.mkfifo(target / "d" / "fifo")
(target / "e" / "f").chmod(0o100)
for name in ("d", "e"):
    (target / name).chmod(0o500)
run.publish("none", lambda files: (files.rmtree("d"), files.rmtree("e"), files.touch("a")))
for _ in range(2):
    print(told("always"))
print(list(tree(target)))
print([(name, oct((target / name).stat().st_mode)) for name in ("d", "e")], os.listdir(target / "d"), os.listdir(target / "e"))
"""
    assert tried(program) == [
        "(1, 0, 2, ('d/fifo', 'e/f'))",
        "(0, 1, 0, ('d/fifo', 'e/f'))",
        "['a', 'd', 'd/fifo', 'e', 'e/f', 'e/f/x']",
        "[('d', '0o40500'), ('e', '0o40500')] ['fifo'] ['f']",
    ]


def test_a_folder_that_can_be_listed_and_not_entered_is_left_with_all_in_it() -> None:
    program = """
written_out("d")
(target / "d").chmod(0o400)
run.publish("none", lambda files: files.rmtree("d"))
print(told("always"))
print(tree(target))
"""
    assert tried(program) == ["(0, 0, 0, ('d/x',))", "{'d': ('directory', 256, b''), 'd/x': ('file', 420, b'x')}"]


def test_what_fails_in_the_middle_leaves_every_folder_as_closed_as_it_was() -> None:
    program = """
run.publish("old", lambda files: (files.mkdir("d"), files.mkdir("d/e"), files.write_text("d/e/x", "x"), files.mkdir("d/z")))
run.checkout(target)
(target / "d" / "z").rmdir()
os.mkfifo(target / "d" / "z")
for name in ("d/e", "d"):
    (target / name).chmod(0)
before = tree(target)
print(told("changed"), tree(target) == before)
"""
    assert tried(program) == ["('FileExistsError', 'd/z') True"]


def test_what_is_somebody_else_s_is_refused_by_name_and_left_alone_where_it_is_ignored() -> None:
    program = """
run.publish("own", lambda files: (files.mkdir("theirs"), files.mkdir("theirs/d"), files.mkdir("theirs/d/e"), files.mkdir("shared")))
print(told("changed"), told("always"))
print(told("always", ignore=["theirs"]))
print(told("always", ignore=["theirs", "shared/"]))
"""
    with nobodys_folder() as top:
        for name, mode in (("theirs", 0o700), ("shared", 0o1777)):
            (top / "target" / name).mkdir(parents=True)
            (top / "target" / name).chmod(mode)
        (top / "target" / "shared" / "x").touch()
        os.chown(top / "target", NOBODY, NOBODY)

        assert tried(program, top) == [
            "('PermissionError', 'theirs') ('PermissionError', 'theirs')",
            "('PermissionError', 'shared/x')",
            "(0, 0, 0, ('shared', 'theirs'))",
        ]
