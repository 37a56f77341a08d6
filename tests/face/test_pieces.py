"""Pieces that are put wait up to a bound and go in one message; what went ahead goes once; after the end nothing goes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import freehold
from freehold import Damaged, Refused
from freehold.pieces import Pieces
from freehold.schema.hashes import ObjectKind
from freehold.schema.limits import CHUNK_BYTES, PIECES_BYTES_MAX
from freehold.schema.messages import KeepObjects, Message, ReadObjects
from freehold.schema.roots import Object, make_object
from freehold.schema.rows import PackedObject
from freehold.storage.content import read
from freehold.storage.objects import packed


class Owner:
    """Answers as the owner of a file does, and counts."""

    def __init__(self) -> None:
        self.kept: dict[bytes, PackedObject] = {}
        self.asked: list[Message] = []

    def __call__(self, message: Message) -> Any:
        self.asked.append(message)
        if isinstance(message, ReadObjects):
            return [self.kept.get(hash_) for hash_ in message.hashes]
        assert isinstance(message, KeepObjects)
        self.kept |= {row.hash: row for row in message.objects}
        return None


def chunk(seed: int, size: int = 1000) -> Object:
    return make_object(ObjectKind.CHUNK, random.Random(seed).randbytes(size))


def test_what_waits_is_read_without_asking_and_sent_with_the_flush() -> None:
    owner = Owner()
    pieces, one = Pieces(owner), chunk(1)
    pieces.put(one)
    pieces.put(one)
    assert (pieces.get(one.hash, one.kind), owner.asked) == (one.data, [])

    pieces.flush()
    pieces.flush()

    assert [type(message) for message in owner.asked] == [KeepObjects]
    assert (list(owner.kept), pieces.get(one.hash, one.kind)) == ([one.hash], one.data)


def test_no_more_waits_than_the_bound() -> None:
    owner = Owner()
    pieces = Pieces(owner)
    for seed in range(40):
        pieces.put(chunk(seed, PIECES_BYTES_MAX // 16))

    sizes = [sum(len(row.data) for row in message.objects) for message in owner.asked if isinstance(message, KeepObjects)]
    assert sizes == [PIECES_BYTES_MAX] * 2
    assert len(pieces.rest()) == 8
    assert pieces.rest() == ()


@pytest.mark.parametrize("ahead", [True, False])
def test_what_went_ahead_is_known_and_not_sent_again(ahead: bool) -> None:
    owner = Owner()
    pieces, one = Pieces(owner, ahead=ahead), chunk(1)
    for _ in range(2):
        pieces.put(one)
        pieces.flush()

    assert [message.ahead for message in owner.asked if isinstance(message, KeepObjects)] == ([True] if ahead else [False, False])
    assert pieces.sent == ({one.hash} if ahead else set())


def test_a_piece_that_is_missing_or_another_is_damage() -> None:
    owner = Owner()
    pieces, one, other = Pieces(owner), chunk(1), chunk(2)
    owner.kept[other.hash] = PackedObject(other.hash, int(other.kind), len(one.data), 0, one.data)

    for hash_, kind in ((one.hash, one.kind), (other.hash, other.kind)):
        with pytest.raises(Damaged):
            pieces.get(hash_, kind)


def test_after_the_end_nothing_is_read_kept_or_sent() -> None:
    owner = Owner()
    pieces, one = Pieces(owner), chunk(1)
    pieces.put(one)
    pieces.end()
    calls = (lambda: pieces.put(one), lambda: pieces.get(one.hash, one.kind), lambda: pieces.expect((one.hash,)))

    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == "transaction_over"
    pieces.flush()
    assert (owner.asked, pieces.rest()) == ([], ())


def test_what_is_expected_comes_with_one_message_and_is_asked_for_no_more() -> None:
    owner = Owner()
    pieces, one, other, waiting, late = Pieces(owner), chunk(1), chunk(2), chunk(3), chunk(4)
    owner.kept |= {each.hash: packed(each) for each in (one, other)}
    pieces.put(waiting)

    pieces.expect([one.hash, other.hash, waiting.hash, late.hash])

    assert [message.hashes for message in owner.asked if isinstance(message, ReadObjects)] == [(one.hash, other.hash, late.hash)]
    owner.kept[late.hash] = packed(late)  # it has come after it was expected
    pieces.flush()
    owner.asked.clear()
    for each in (one, other):
        assert pieces.get(each.hash, each.kind) == each.data
    assert owner.asked == []
    for each in (one, waiting, late):
        assert pieces.get(each.hash, each.kind) == each.data


def test_what_was_expected_before_gives_way_to_what_is_expected_now() -> None:
    owner = Owner()
    pieces, one, other = Pieces(owner), chunk(1), chunk(2)
    owner.kept |= {each.hash: packed(each) for each in (one, other)}
    pieces.expect([one.hash])
    pieces.expect([other.hash])
    owner.asked.clear()

    assert pieces.get(one.hash, one.kind) == one.data
    assert len(owner.asked) == 1


def test_a_file_that_is_read_from_chunk_to_chunk_comes_in_few_messages(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(40 * CHUNK_BYTES)
    with freehold.open(tmp_path) as host, host.create("a") as run:
        run.publish("large", lambda files: files.write_bytes("large", data))
        asked: list[int] = []

        def ask(message: Message) -> Any:
            if isinstance(message, ReadObjects):
                asked.append(len(message.hashes))
            return run._ask(message)

        content = run.files._using(lambda workspace: workspace.content(("large",)))

        assert b"".join(read(Pieces(ask), content)) == data
        assert asked == [1, 1, 16, 16, 7]
        asked.clear()
        assert next(read(Pieces(ask), content, 30 * CHUNK_BYTES)) == data[30 * CHUNK_BYTES : 31 * CHUNK_BYTES]
        assert asked == [1, 1]
