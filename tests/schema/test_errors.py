"""Every error has one of the listed codes, crosses thread, process and JSON borders whole, and never carries a foreign text."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from freehold.schema import errors
from freehold.schema.errors import CODES, DeadlineExceeded, Error, Holder, OwnedElsewhere, Refused, StorageFailed, from_record

CLASSES = sorted({cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, Error)}, key=lambda cls: cls.__name__)
BRANCHES = (errors.Refused, errors.Unavailable, errors.Damaged, errors.Crashed, errors.NotCompleted)
PRIMITIVES: dict[str, Any] = {"rule": "chain", "seq": 7, "half": 0.5, "sure": True, "nothing": None, "pids": [1, 2], "inner": {"a": 1}}
HOLDER = Holder(7, "box", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def made(code: str) -> Error:
    return CODES[code]("a sentence; nothing was changed", code=code, executed="unknown", **PRIMITIVES)


def facts(error: Error) -> tuple[object, ...]:
    return type(error), str(error), error.code, error.executed, error.details, error.retryable, error.exit_code


@pytest.mark.parametrize("code", CODES)
def test_every_code_constructs_its_class(code: str) -> None:
    error = made(code)

    assert (type(error), error.code, str(error)) == (CODES[code], code, "a sentence; nothing was changed")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_has_a_code_of_its_own(cls: type[Error]) -> None:
    assert CODES[cls.default_code] is cls
    assert cls("a sentence").code == cls.default_code
    assert [other for other in CLASSES if other is not cls and other.default_code == cls.default_code] == []


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls not in {Error, DeadlineExceeded}])
def test_every_error_is_on_one_branch(cls: type[Error]) -> None:
    assert sum(issubclass(cls, branch) for branch in BRANCHES) == 1


@pytest.mark.parametrize(("cls", "code"), [(errors.Damaged, "bad_name"), (errors.ValueRefused, "refused"), (errors.RunEnded, "run_exists")])
def test_a_code_under_another_class_is_our_mistake(cls: type[Error], code: str) -> None:
    with pytest.raises(AssertionError):
        cls("a sentence", code=code)


def test_an_unlisted_code_is_our_mistake() -> None:
    with pytest.raises(KeyError):
        Error("a sentence", code="never_heard_of")


def test_without_a_word_an_error_was_not_executed() -> None:
    error = Refused("a sentence")

    assert (error.executed, error.details, error.code) == ("no", {}, "refused")


@pytest.mark.parametrize("code", CODES)
def test_every_error_comes_back_from_its_record_through_json(code: str) -> None:
    error = made(code)
    record = json.loads(json.dumps(error.record()))

    assert facts(from_record(record)) == facts(error)
    assert from_record(record).record() == record


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("way", [lambda error: pickle.loads(pickle.dumps(error)), Error.copy, copy.copy, copy.deepcopy])
def test_every_error_can_be_pickled_and_copied(code: str, way: Any) -> None:
    error = made(code)
    twin = way(error)

    assert twin is not error
    assert facts(twin) == facts(error)


def test_a_copy_has_the_cause_and_neither_traceback_nor_shared_details() -> None:
    error = made("storage_failed")
    error.__cause__ = cause = OSError(5, "disk")
    with pytest.raises(StorageFailed):
        raise error
    twin = error.copy()
    twin.details["rule"] = "other"

    assert (twin.__cause__, twin.__traceback__) == (cause, None)
    assert error.details["rule"] == "chain"


def chained(depth: int) -> Error:
    error = Error("level 1")
    above: BaseException = error
    for level in range(2, depth + 1):
        above.__cause__ = Error(f"level {level}")
        above = above.__cause__
    return error


@pytest.mark.parametrize(("depth", "kept"), [(1, 1), (2, 2), (3, 3), (4, 3), (9, 3)])
def test_causes_are_told_to_depth_three(depth: int, kept: int) -> None:
    record: Any = chained(depth).record()
    messages = []
    told: BaseException | None = from_record(record)
    while record is not None:
        messages.append(record["message"])
        record = record.get("cause")

    assert messages == [f"level {level}" for level in range(1, kept + 1)]
    for message in messages:
        assert str(told) == message
        assert told is not None
        told = told.__cause__
    assert told is None


def test_a_foreign_causes_text_is_never_carried() -> None:
    error = made("crashed")
    error.__cause__ = ValueError("SECRET")
    error.__cause__.__cause__ = made("damaged")
    record = error.record()

    assert "SECRET" not in json.dumps(record)
    assert record["cause"]["error"] == "ValueError"
    assert record["cause"]["cause"]["code"] == "damaged"
    assert from_record(record).__cause__ is None


def test_a_ring_of_causes_ends() -> None:
    error, other = made("crashed"), made("damaged")
    error.__cause__, other.__cause__ = other, error

    assert error.record()["cause"]["cause"]["code"] == "crashed"
    assert "cause" not in error.record()["cause"]["cause"]


def test_a_code_of_a_newer_build_becomes_a_plain_error() -> None:
    record = {**made("refused").record(), "code": "not_yet_known", "error": "NotYetKnown"}
    error = from_record(record)

    assert (type(error), error.code, str(error)) == (Error, "error", "a sentence; nothing was changed")


def test_details_become_plain_data() -> None:
    error = Refused("a sentence", holder=HOLDER, files=("a", {"b"}), where={1: UTC}, exact=2**70)
    details = error.record()["details"]

    assert details == {
        "holder": {"pid": 7, "hostname": "box", "since": "2026-01-02T03:04:05.000Z"},
        "files": ["a", ["b"]],
        "where": {"1": "UTC"},
        "exact": 2**70,
    }
    assert json.loads(json.dumps(details)) == details


def test_a_holder_is_the_same_before_and_after_the_border() -> None:
    error = OwnedElsewhere("a sentence", holder=HOLDER)
    told = from_record(json.loads(json.dumps(error.record())))

    assert isinstance(told, OwnedElsewhere)
    assert error.holder == told.holder == HOLDER
    assert OwnedElsewhere("a sentence").holder is None


KIN = [
    ("run_not_found", LookupError),
    ("bad_path", ValueError),
    ("value_refused", TypeError),
    ("value_too_deep", TypeError),
    ("value_too_large", TypeError),
    ("deadline_exceeded", TimeoutError),
]


@pytest.mark.parametrize(("code", "kin"), KIN)
def test_pythons_own_kin_catches_it(code: str, kin: type[Exception]) -> None:
    with pytest.raises(kin) as raised:
        raise made(code)

    assert str(raised.value) == "a sentence; nothing was changed"


def test_no_other_error_has_kin_of_pythons() -> None:
    kin = {code for code, cls in CODES.items() if issubclass(cls, LookupError | TypeError | OSError | ValueError | RuntimeError)}

    assert kin == {code for code, _ in KIN}


EXITS = [(Refused, 4), (errors.Damaged, 5), (errors.Unavailable, 6), (DeadlineExceeded, 6), (errors.Crashed, 70), (errors.NotCompleted, 1)]


@pytest.mark.parametrize(("branch", "exit_code"), EXITS)
def test_every_branch_has_its_exit_code(branch: type[Error], exit_code: int) -> None:
    codes = [code for code, cls in CODES.items() if issubclass(cls, branch)]

    assert codes
    assert {made(code).exit_code for code in codes} == {exit_code}


def test_only_what_may_succeed_later_is_retryable() -> None:
    retryable = {cls for cls in CLASSES if cls("a sentence").retryable}

    assert retryable == {cls for cls in CLASSES if issubclass(cls, errors.Unavailable | errors.Crashed | DeadlineExceeded)} - {
        errors.LeaseLost  # this lease does not come back
    }
