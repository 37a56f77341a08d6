"""Every file is recognised or refused by name, and its folder is left as it was: bytes, names and times."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from folder import descriptors, snapshot
from runfile import forge, forge_and_die, new_run

from freehold.schema import limits
from freehold.schema.errors import Damaged, Error, Unavailable
from freehold.storage import recognise as module
from freehold.storage import siblings
from freehold.storage.path import RunPath, resolve
from freehold.storage.pin import pin
from freehold.storage.recognise import Recognised, overlay, recognise
from freehold.storage.vfs.overlay import Copied

NOTE = (
    "INSERT INTO event (seq, id, kind, name, record, root, recorded_at, hash) "
    "SELECT seq + 1, randomblob(16), 'note', 'SECRET', '\"SECRET\"', root, recorded_at, hash FROM event ORDER BY seq DESC LIMIT 1"
)


@pytest.fixture
def path(tmp_path: Path) -> RunPath:
    return new_run(tmp_path)


def recognised(path: RunPath) -> Recognised:
    """Recognise, as an owner and as a reader, and show that the folder is as it was."""
    before = snapshot(Path(path.folder))
    found = []
    for exclusive in (True, False):
        held = pin(path, exclusive=exclusive)
        try:
            found.append(recognise(held))
        finally:
            held.close()
            assert snapshot(Path(path.folder)) == before
    assert found[0] == found[1]
    return found[0]


def refusal(path: RunPath) -> Error:
    """Return why a file is refused; neither the message nor the details repeat what is stored."""
    with pytest.raises(Error) as raised:
        recognised(path)
    assert "SECRET" not in f"{raised.value}{raised.value.details}{raised.value.__cause__}"
    return raised.value


def test_a_new_run_is_recognised(path: RunPath) -> None:
    found = recognised(path)

    assert (found.run.id, found.run.project, found.run.props, found.run.status) == ("a", "paint", '{"colour":"blue"}', "created")
    assert (found.last_seq, found.run.epoch, found.run.txn) == (1, 0, 1)
    assert found.schema_cookie > 0


def test_a_leftover_wal_is_read_and_left_alone(path: RunPath) -> None:
    forge_and_die(path, 'UPDATE run SET props = \'{"colour":"red"}\', txn = 2')
    assert Path(path.sibling("-wal")).stat().st_size > 0

    assert recognised(path).run.props == '{"colour":"red"}'
    # In a file read by itself the old value would still stand.
    Path(path.sibling("-wal")).unlink()
    assert recognised(path).run.props == '{"colour":"blue"}'


def test_an_empty_wal_is_as_good_as_none(path: RunPath) -> None:
    Path(path.sibling("-wal")).touch()
    Path(path.sibling("-journal")).touch()
    assert recognised(path).last_seq == 1

    os.truncate(path.file, Path(path.file).stat().st_size - 4096)
    assert refusal(path).details["rule"] == "truncated"


def test_a_header_that_was_half_brought_home_counts_for_nothing_beside_its_wal(path: RunPath) -> None:
    forge_and_die(path, "PRAGMA user_version = 1")  # the newest first page stands in the -wal
    with Path(path.file).open("r+b") as file:
        file.seek(28)
        file.write(b"\0\1\0\0")  # a page count that the file has not grown to yet

    assert recognised(path).last_seq == 1


def test_the_wal_of_another_run_is_not_taken_for_ours(path: RunPath, tmp_path: Path) -> None:
    other = new_run(tmp_path, "b")
    forge_and_die(other, "VACUUM")  # every page of the other run stands in its -wal
    Path(other.sibling("-wal")).rename(path.sibling("-wal"))
    Path(other.sibling("-shm")).unlink()

    assert refusal(path).code == "another_run"


def test_a_wal_cut_short_gives_what_was_committed_before(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2", "UPDATE run SET txn = 3")
    os.truncate(path.sibling("-wal"), Path(path.sibling("-wal")).stat().st_size - 1)

    assert recognised(path).run.txn == 2


def overwrite(content: bytes) -> Callable[[RunPath], object]:
    return lambda path: Path(path.file).write_bytes(content)


def cut(size: int) -> Callable[[RunPath], None]:
    return lambda path: os.truncate(path.file, size)


def sql(*statements: str) -> Callable[[RunPath], None]:
    return lambda path: forge(path, *statements)


def zero_with_wal(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    os.truncate(path.file, 0)


def zero_with_journal(path: RunPath) -> None:
    os.truncate(path.file, 0)
    Path(path.sibling("-journal")).write_bytes(b"x" * 1000)


def journal(path: RunPath) -> None:
    Path(path.sibling("-journal")).write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))


def rollback_mode_with_wal(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    with Path(path.file).open("r+b") as file:
        file.seek(18)
        file.write(b"\1\1")


def garbage_with_wal(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    Path(path.file).write_bytes(b"SECRET" * 1000)


def corrupt(path: RunPath) -> None:
    raw = bytearray(Path(path.file).read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    Path(path.file).write_bytes(raw)


def foreign_database(path: RunPath) -> None:
    Path(path.file).unlink()
    db = apsw.Connection(path.file)
    db.execute("CREATE TABLE t (a)")
    db.close()


@pytest.mark.parametrize(
    ("change", "code", "rule"),
    [
        (overwrite(b"SECRET" * 1000), "not_a_run", None),
        (overwrite(b"x"), "not_a_run", None),
        (foreign_database, "not_a_run", None),
        (sql("PRAGMA application_id = 77"), "not_a_run", None),
        (garbage_with_wal, "not_a_run", None),
        (cut(0), "damaged", "zero_length"),
        (zero_with_wal, "damaged", "zero_length"),
        (zero_with_journal, "damaged", "leftover_journal"),
        (journal, "damaged", "leftover_journal"),
        (cut(50), "damaged", "truncated"),
        (cut(100), "damaged", "truncated"),
        (cut(512), "damaged", "truncated"),
        (cut(4096), "damaged", "truncated"),
        (cut(5000), "damaged", "truncated"),
        (cut(8192), "damaged", "truncated"),
        (corrupt, "damaged", "sqlite"),
        (rollback_mode_with_wal, "damaged", "format"),
        (sql("PRAGMA journal_mode = delete"), "damaged", "format"),
        (sql("PRAGMA user_version = 0"), "partial", "user_version"),
        (sql("PRAGMA user_version = 2"), "newer_version", None),
        (sql("PRAGMA user_version = -1"), "newer_version", None),
        (sql("DROP TABLE request"), "incomplete_version", None),
        (sql("CREATE TABLE extra (a)"), "damaged", "structure"),
        (sql("PRAGMA foreign_keys = 0", "INSERT INTO request VALUES ('x', zeroblob(32), 2, 99, NULL, 0)"), "damaged", "foreign_keys"),
    ],
)
def test_each_fault_has_its_own_refusal(path: RunPath, change: Callable[[RunPath], None], code: str, rule: str | None) -> None:
    change(path)

    error = refusal(path)
    assert (error.code, error.details.get("rule")) == (code, rule)


@pytest.mark.parametrize(
    ("statement", "code", "rule"),
    [
        ("PRAGMA application_id = 77", "not_a_run", None),
        ("PRAGMA user_version = 0", "partial", "user_version"),
        ("PRAGMA user_version = 3", "newer_version", None),
        ("CREATE VIEW extra AS SELECT 1", "damaged", "structure"),
        (NOTE, "damaged", "event_hash"),
    ],
)
def test_what_stands_only_in_the_wal_is_judged_too(path: RunPath, statement: str, code: str, rule: str | None) -> None:
    forge_and_die(path, statement)

    error = refusal(path)
    assert (error.code, error.details.get("rule")) == (code, rule)


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_sibling_that_is_not_one_plain_file_is_refused(path: RunPath, tmp_path: Path, suffix: str) -> None:
    sibling, other = Path(path.sibling(suffix)), tmp_path / "other"
    other.write_bytes(b"SECRET")
    makers: list[tuple[Callable[[], None], str]] = [
        (lambda: sibling.symlink_to("other"), "not_a_file"),
        (lambda: os.mkfifo(sibling), "not_a_file"),
        (lambda: sibling.hardlink_to(other), "hard_link"),
    ]
    for make, code in makers:
        make()
        assert refusal(path).code == code
        sibling.unlink()


def test_a_copy_under_another_name_is_another_runs_file(path: RunPath, tmp_path: Path) -> None:
    (tmp_path / "SECRET.sqlite").write_bytes(Path(path.file).read_bytes())
    copy = resolve(tmp_path, "SECRET")
    forge(copy, "UPDATE run SET id = 'SECRET2'")

    before = snapshot(tmp_path)
    held = pin(copy, exclusive=True)
    with pytest.raises(Error) as raised:
        recognise(held)
    held.close()
    assert raised.value.code == "another_run"
    assert "SECRET2" not in str(raised.value)
    assert snapshot(tmp_path) == before


def test_a_copy_beside_its_original_is_another_runs_file(path: RunPath, tmp_path: Path) -> None:
    (tmp_path / "b.sqlite").write_bytes(Path(path.file).read_bytes())

    assert refusal(resolve(tmp_path, "b")).code == "another_run"
    assert recognised(path).run.id == "a"


def test_on_a_disk_that_does_not_tell_case_the_stored_spelling_is_the_same_file(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a disk is not at hand; what it would do is to answer to both names with one inode.
    upper = RunPath(path.folder, "A")
    lstat, opened = os.lstat, siblings.open_wal
    monkeypatch.setattr(os, "lstat", lambda name: lstat(str(name).replace("A.sqlite", "a.sqlite")))
    monkeypatch.setattr(module, "open_wal", lambda _: opened(path))
    held = pin(path, exclusive=True)
    held.path = upper

    assert recognise(held).run.id == "a"
    held.close()


def test_a_large_file_is_checked_at_its_frontier_only(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(path, "PRAGMA foreign_keys = 0", "INSERT INTO request VALUES ('x', zeroblob(32), 2, 99, NULL, 0)")
    assert refusal(path).details["rule"] == "foreign_keys"

    monkeypatch.setattr(module, "FOREIGN_KEYS_WHOLE_BYTES", Path(path.file).stat().st_size - 1)
    assert recognised(path).last_seq == 1
    assert Path(path.file).stat().st_size < limits.FOREIGN_KEYS_WHOLE_BYTES


def test_a_large_wal_makes_a_large_file(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_and_die(path, "PRAGMA foreign_keys = 0", "INSERT INTO request VALUES ('x', zeroblob(32), 2, 99, NULL, 0)")
    assert refusal(path).details["rule"] == "foreign_keys"

    monkeypatch.setattr(module, "FOREIGN_KEYS_WHOLE_BYTES", Path(path.file).stat().st_size)
    assert recognised(path).last_seq == 1


def test_a_file_that_changes_while_it_is_read_is_to_be_read_again(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    look = module._look

    def change_after(db: apsw.Connection, *rest: object) -> Recognised:
        found = look(db, *rest)  # type: ignore[arg-type]
        os.utime(path.file)
        return found

    monkeypatch.setattr(module, "_look", change_after)
    held = pin(path, exclusive=True)
    with pytest.raises(Unavailable) as raised, overlay(held):
        raise AssertionError
    held.close()
    assert raised.value.code == "changed_while_reading"


def test_what_went_wrong_because_the_file_changed_is_told_as_that(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    def change_and_fail(*_: object) -> Recognised:
        os.utime(path.file)
        raise Damaged("it was in the middle of a change")

    monkeypatch.setattr(module, "_look", change_and_fail)
    held = pin(path, exclusive=True)
    with pytest.raises(Unavailable) as raised:
        recognise(held)
    held.close()
    assert raised.value.code == "changed_while_reading"


def test_a_schema_that_is_not_utf_8_is_damage_and_not_shown(path: RunPath) -> None:
    forge(
        path,
        "UPDATE sqlite_schema SET sql = CAST(sql || x'202f2a534543524554ff2a2f' AS TEXT) WHERE name = 'ref_root'",
        writable_schema=True,
    )

    assert refusal(path).details["rule"] == "structure"


def test_looking_copies_nothing_into_memory(path: RunPath, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    written: list[int] = []
    monkeypatch.setattr(Copied, "write", lambda _, data, __: written.append(len(data)))

    assert recognised(path).run.txn == 2
    assert written == []


@pytest.mark.parametrize("change", [lambda file: os.truncate(file, 0), os.unlink], ids=["emptied", "removed"])
def test_a_reader_is_told_at_the_end_that_the_file_changed_under_it(path: RunPath, change: Callable[[str], None]) -> None:
    held = pin(path, exclusive=True)
    with pytest.raises(Unavailable), overlay(held) as db:
        assert db.execute("SELECT id FROM run").get == "a"
        change(path.file)
    held.close()


def test_what_is_written_to_the_overlay_goes_nowhere(path: RunPath, tmp_path: Path) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    before = snapshot(tmp_path)
    held = pin(path, exclusive=True)
    with overlay(held) as db:
        db.execute("UPDATE run SET txn = 7")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert db.execute("SELECT txn FROM run").get == 7
    held.close()

    assert snapshot(tmp_path) == before
    assert recognised(path).run.txn == 2


def test_looking_leaves_no_descriptor_open_but_the_pins(path: RunPath) -> None:
    forge_and_die(path, "UPDATE run SET txn = 2")
    held = pin(path, exclusive=True)
    recognise(held)
    open_before = descriptors()
    recognise(held)
    with overlay(held):
        assert descriptors() > open_before

    assert descriptors() == open_before
    held.close()
