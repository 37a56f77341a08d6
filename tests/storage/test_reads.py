"""Every read answers alike over the owner's connection and over a reader's, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from folder import snapshot
from owned import live_richly, own
from runfile import forge, new_run

from freehold.schema import messages
from freehold.schema.errors import Damaged
from freehold.schema.messages import Message
from freehold.schema.roots import EMPTY_ROOT, EMPTY_TREE
from freehold.storage.path import RunPath
from freehold.storage.reader import reading
from freehold.storage.reads import READS

ASKED: list[Message] = [
    messages.ReadRun(),
    messages.ReadPage(0),
    messages.ReadPage(3),
    messages.ReadPage(0, "n"),
    messages.ReadPage(0, "none"),
    messages.ReadPage(99, reverse=True),
    messages.ReadPage(8, "n", reverse=True),
    messages.ReadEvent(1),
    messages.ReadEvent(3),
    messages.FindId(bytes(16)),
    messages.ReadRoot(),
    messages.ReadRoot(0),
    messages.ReadRoot(5),
    messages.FindRoot(bytes(32), b"\xff" * 32),
    messages.FindRoot(b"\xff" * 32, b"\xff" * 32),
    messages.ReadObjects((EMPTY_TREE.hash, bytes(32))),
    messages.ReadObjects(()),
    messages.ReadChanges(EMPTY_ROOT.hash, EMPTY_ROOT.hash),
    messages.FindTime(0),
    messages.FindTime(2**60),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> RunPath:
    return live_richly(tmp_path_factory.mktemp("read"))


def test_every_message_that_reads_the_file_is_here_and_none_that_writes() -> None:
    named = {kind for name, kind in vars(messages).items() if name.startswith(("Read", "Find"))}

    assert set(READS) == named == {type(message) for message in ASKED}
    assert not any(kind.writes for kind in READS)


@pytest.mark.parametrize("message", ASKED)
def test_a_reader_is_answered_like_the_owner(path: RunPath, message: Message) -> None:
    before = snapshot(Path(path.folder))
    with reading(path) as db:
        read = READS[type(message)](db, message)
    assert snapshot(Path(path.folder)) == before
    store = own(path)
    changes = store.db.total_changes()
    owned = READS[type(message)](store.db, message)

    assert store.db.total_changes() == changes
    store.close(clean=False)
    assert standing(owned) == standing(read)


def standing(answer: Any) -> Any:
    """Return an answer without what a take-over changes."""
    if isinstance(answer, tuple) and hasattr(answer[0], "_replace") and hasattr(answer[0], "epoch"):
        return answer[0]._replace(epoch=0, txn=0, updated_at=0), answer[1]
    return answer


def test_an_id_that_was_read_is_found(path: RunPath) -> None:
    with reading(path) as db:
        for event in READS[messages.ReadPage](db, messages.ReadPage(0))[0]:
            assert READS[messages.FindId](db, messages.FindId(event.id)) == event.seq
            assert READS[messages.ReadEvent](db, messages.ReadEvent(event.seq)) == event


def test_text_that_is_not_utf_8_is_malformed_and_not_shown(tmp_path: Path) -> None:
    path = new_run(tmp_path)
    forge(path, "UPDATE run SET project = CAST(x'534543524554ff' AS TEXT)")
    db = apsw.Connection(path.file)
    with pytest.raises(Damaged) as raised:
        READS[messages.ReadRun](db, messages.ReadRun())
    db.close()

    assert raised.value.code == "malformed_record"
    assert "SECRET" not in f"{raised.value}{raised.value.details}{raised.value.__cause__}"
