"""Of any exception a failure comes out, and never another error: plain, bounded, with no secret in it, and equal when it is read back."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from unruly import NAMES, raised_by, refuse, unruly

from freehold.schema.errors import Damaged, Refused, ValueRefused
from freehold.schema.failure import CUT, Failure, error_of, failure_of, read_failure
from freehold.schema.limits import FAILURE_BYTES_MAX, FAILURE_TEXT_BYTES_MAX
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import encode, is_canonical

PLAIN = SecretFilter()
TOKEN = "S3CR_canary-42"
CAREFUL = SecretFilter({"word": TOKEN}, "mask")


class CodedError(Exception):
    """One whose constructor is its own: it could not be made again from its text."""

    def __init__(self, code: int, detail: str) -> None:
        self.code = code
        self.detail = detail


def kept(error: BaseException, secrets: SecretFilter = PLAIN) -> Failure:
    """Return the failure, once it is sure that it is well written and comes back equal."""
    failure = failure_of(error, secrets)
    assert is_canonical(failure.text)
    assert len(failure.text.encode()) <= FAILURE_BYTES_MAX
    assert read_failure(failure.text).text == failure.text
    return failure


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    def fail() -> None:
        raise error from cause

    found = raised_by(fail)
    assert found is not None
    return found


def test_an_exception_is_kept_with_what_it_says_of_itself() -> None:
    error = raised(CodedError(7, "disk"), OSError(28))
    error.add_note("while writing")
    failure = kept(error)

    assert (failure.type, failure.message) == (f"{__name__}.CodedError", "(7, 'disk')")
    assert failure.details == {"code": 7, "detail": "disk"}
    assert failure.notes == ("while writing",)
    assert [line.split(", in ")[1] for line in failure.traceback.splitlines()] == ["raised_by", "raised.<locals>.fail"]
    assert failure.cause is not None
    assert (failure.cause.type, failure.cause.message, failure.cause.cause) == ("OSError", "28", None)
    assert read_failure(failure.text) == failure


def test_a_cause_is_kept_to_the_third_and_no_further() -> None:
    error: BaseException = ValueError("0")
    for number in range(1, 6):
        error = raised(ValueError(str(number)), error)
    failure = kept(error)

    assert failure.cause is not None
    assert failure.cause.cause is not None
    assert (failure.message, failure.cause.message, failure.cause.cause.message) == ("5", "4", "3")
    assert failure.cause.cause.cause is None


def test_what_was_being_handled_is_told_unless_it_is_suppressed() -> None:
    def fail(*, quietly: bool) -> None:
        try:
            raise KeyError("first")
        except KeyError:
            if quietly:
                raise ValueError("second") from None
            raise ValueError("second")  # noqa: B904 - the context is what is asked about

    loud, quiet = raised_by(lambda: fail(quietly=False)), raised_by(lambda: fail(quietly=True))
    assert loud is not None
    assert quiet is not None
    cause = kept(loud).cause
    assert cause is not None
    assert cause.type == "KeyError"
    assert kept(quiet).cause is None


def test_a_chain_that_goes_round_comes_to_an_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    failure = kept(one)

    assert failure.cause is not None
    assert failure.cause.cause is not None
    assert failure.cause.cause.message == "one"


def test_an_attribute_that_is_no_plain_value_is_left_out() -> None:
    @dataclasses.dataclass
    class Odd:
        open: Any

        @property
        def broken(self) -> Any:
            return refuse()

    error = CodedError(7, "disk")
    with socket.socket() as open_one:
        for name, member in {
            "socket": open_one,
            "inside": [{"socket": open_one}],
            "odd": Odd(object()),
            "pair": (1, {2}),
            "deep": _nested(200),
            "nan": float("nan"),
            "\ud800": 1,
            "text": "a\ud800",
        }.items():
            setattr(error, name, member)
        vars(error)[7] = "seven"  # type: ignore[index]
        details = kept(error).details

    assert list(details) == ["code", "detail", "pair", "nan"]
    assert details["pair"] == (1, {2})


def _nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize("levels", [90, 93, 95, 99])
def test_an_attribute_as_deep_as_a_value_may_be_leaves_the_rest(levels: int) -> None:
    error = CodedError(7, "disk")
    error.detail = _nested(levels)  # type: ignore[assignment]

    assert kept(raised(ValueError("outer"), error)).message == "outer"


@pytest.mark.parametrize("name", NAMES)
def test_whatever_its_class_does_a_failure_comes_out(name: str) -> None:
    failure = kept(raised(unruly(name)))

    assert failure.type == "unruly.Unruly"
    assert failure.details == {}
    assert "raised.<locals>.fail" in failure.traceback


def test_the_attributes_that_it_has_are_kept_and_not_those_that_its_class_tells_of() -> None:
    class Teller(Exception):
        __dict__ = property(lambda _: {"told": 1})

    error = Teller()
    error.true = 2  # type: ignore[attr-defined]

    assert kept(error).details == {"true": 2}


class Loud(Exception):
    """Whose text is whatever it is told to be."""

    def __init__(self, say: Callable[[], Any]) -> None:
        self.say = say

    def __str__(self) -> str:
        return self.say()  # type: ignore[no-any-return]


class Liar(str):
    """A text that says other things of itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "innocent"

    def encode(self, *_: Any) -> bytes:
        return refuse()

    def __eq__(self, other: object) -> bool:
        return refuse()

    def __hash__(self) -> int:
        return str.__hash__(self)


class Odd(BaseException):
    """No Exception, and nobody's wish to end the program."""


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (lambda: 7, "(its text cannot be told: TypeError)"),
        (lambda: _raise(ValueError("no")), "(its text cannot be told: ValueError)"),
        (lambda: _raise(Odd()), "(its text cannot be told: Odd)"),
        (lambda: _raise(RecursionError()), "(its text cannot be told: RecursionError)"),
        (lambda: Liar("true"), "true"),
        (lambda: "a\ud800b", "a\\ud800b"),
        (lambda: "a\0b", "a\0b"),
    ],
)
def test_a_text_that_cannot_be_told_is_said_to_be_none(say: Callable[[], Any], message: str) -> None:
    assert kept(Loud(say)).message == message


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_who_wants_the_program_to_end_is_heard(kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        failure_of(Loud(lambda: _raise(kind())), PLAIN)


def test_names_and_notes_that_lie_are_read_as_they_are() -> None:
    class Endless(list[Any]):
        def __iter__(self) -> Any:
            return refuse()

    error = ValueError("x")
    vars(error)["__notes__"] = Endless(["one", Liar("two"), 3])
    vars(error)[Liar("name")] = 1
    failure = kept(error)

    assert failure.notes == ("one", "two")
    assert failure.details == {"name": 1}
    vars(error)["__notes__"] = 7
    assert kept(error).notes == ()


def test_a_class_without_a_module_that_is_text_is_called_by_its_name() -> None:
    assert kept(type("Bare", (Exception,), {"__module__": 7})()).type == "Bare"


def test_long_texts_are_cut_with_a_mark() -> None:
    error = CodedError(7, "x" * 20_000)
    error.args = ("é" * 20_000,)
    for number in range(100):
        error.add_note(f"{number} " + "n" * 500)
    failure = kept(error)

    assert len(failure.message.encode()) <= FAILURE_TEXT_BYTES_MAX
    assert failure.message.endswith(CUT)
    assert failure.message.startswith("ééé")
    assert failure.notes[-1].endswith(CUT)
    assert sum(len(note.encode()) for note in failure.notes) <= FAILURE_TEXT_BYTES_MAX
    assert failure.details == {"code": 7}


def test_all_of_it_is_bounded_and_its_own_message_goes_last() -> None:
    error: BaseException = ValueError("innermost")
    for number in range(3):
        error = raised(CodedError(number, "\x01" * 8000), error)
        error.args = ("\x01" * 8000,)
        error.add_note("\x01" * 8000)
    failure = kept(error)

    assert failure.type == f"{__name__}.CodedError"
    assert failure.message.startswith("\x01" * 100)
    assert failure.cause is not None


def test_of_a_long_traceback_the_innermost_frames_are_kept() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("bottom")
        fall(depth - 1)

    error = raised_by(fall, 700)
    assert error is not None
    traceback = kept(error).traceback

    assert traceback.startswith(CUT)
    assert len(traceback.encode()) <= FAILURE_TEXT_BYTES_MAX
    assert traceback.splitlines()[-1].endswith("fall")
    assert all(line.startswith('File "') for line in traceback.splitlines()[1:])


def test_our_own_frames_are_no_part_of_a_traceback() -> None:
    error = raised_by(lambda: read_failure("{}"))
    assert error is not None
    traceback = kept(error).traceback

    assert "failure.py" not in traceback.replace(__file__, "")
    assert traceback


def test_no_declared_secret_is_anywhere_in_it() -> None:
    error = raised(CodedError(7, f"x{TOKEN}y"), ValueError(TOKEN))
    error.args = (f"Bearer {TOKEN} and {TOKEN}",)
    error.add_note(f"note {TOKEN}")
    for name, member in {
        TOKEN: 1,
        "env": {"DB_PASSWORD": TOKEN, TOKEN: {TOKEN, 2}},
        "raw": b"\xff" + TOKEN.encode(),
        "pair": (TOKEN, [TOKEN]),
    }.items():
        setattr(error, name, member)
    failure = kept(error, CAREFUL)

    assert "S3CR" not in failure.text
    assert failure.message == "Bearer *** and ***"
    assert failure.details["env"] == {"DB_PASSWORD": "***", "***": {"***", 2}}
    assert failure.details["raw"] == b"\xff***"
    assert failure.cause is not None
    assert failure.cause.message == "***"


def test_no_declared_secret_is_in_the_name_of_a_class_or_a_function() -> None:
    def fails() -> None:
        raise type("S3CR", (Exception,), {})

    error = raised_by(fails)
    assert error is not None
    failure = kept(error, SecretFilter({"one": "S3CR", "other": "fails"}))

    assert failure.type.endswith(".***")
    assert failure.traceback.endswith("<locals>.***")


def test_half_a_secret_is_not_left_where_a_text_is_cut() -> None:
    text = "x" * (FAILURE_TEXT_BYTES_MAX - 8) + TOKEN

    assert "S3CR" not in kept(ValueError(text), CAREFUL).message


def test_a_secret_that_is_part_of_another_hides_all_of_it() -> None:
    both = SecretFilter({"short": "abcd", "long": "abcdefgh"})

    assert kept(ValueError("abcdefgh abcd"), both).message == "*** ***"


def test_a_secret_that_several_members_spell_together_is_hidden() -> None:
    tricky = SecretFilter({"word": "1,2,3"})
    error = CodedError(7, "disk")
    error.detail = [1, 2, 3, 4]  # type: ignore[assignment]

    assert kept(error, tricky).details == {"code": 7}


@pytest.mark.parametrize(("rule", "shown"), [("refuse", False), ("mask", False), ("allow", True)])
def test_a_shape_is_hidden_unless_it_is_allowed(rule: Any, shown: bool) -> None:
    error = CodedError(7, "AKIAIOSFODNN7EXAMPLE")
    error.args = ("clone https://oauth2:tok_ABC123@localhost:1/x.git",)
    vars(error)["headers"] = {"Authorization": "Bearer abc12345"}
    failure = kept(error, SecretFilter(None, rule))

    for secret in ("AKIAIOSFODNN7EXAMPLE", "tok_ABC123", "abc12345"):
        assert (secret in failure.text) == shown
    assert "localhost:1/x.git" in failure.message


def test_an_error_of_ours_comes_back_as_itself() -> None:
    error = raised_by(lambda: encode({"a": [object()]}))
    assert isinstance(error, ValueRefused)
    again = error_of(kept(error))

    assert type(again) is ValueRefused
    assert (str(again), again.code, again.details, again.executed) == (str(error), "value_refused", error.details, "yes")


@pytest.mark.parametrize(
    "failure",
    [
        Failure("ValueError", "x"),
        Failure("freehold.Refused", "x", details={"code": "bad_option"}),
        Failure("freehold.Refused", "x", details={"code": "no such", "details": {}}),
        Failure("freehold.Refused", "x", details={"code": ["bad_option"], "details": {}}),
        Failure("freehold.ValueRefused", "x", details={"code": "bad_option", "details": {}}),
        Failure("other.Refused", "x", details={"code": "bad_option", "details": {}}),
    ],
)
def test_another_exception_is_none_of_ours(failure: Failure) -> None:
    assert error_of(failure) is None


def test_a_detail_cannot_stand_for_an_argument_of_the_error() -> None:
    failure = Failure("freehold.Refused", "x", details={"code": "bad_option", "details": {"message": 1, "code": 2, "self": 3, "a": 4}})
    error = error_of(failure)

    assert error is not None
    assert (str(error), error.code, error.details) == ("x", "bad_option", {"a": 4})


def test_a_subclass_of_ours_is_somebody_elses() -> None:
    class Mine(Refused):
        pass

    error = Mine.__new__(Mine)
    Exception.__init__(error, "x")

    assert kept(error).type.endswith("Mine")


WHOLE = Failure("E", "m", ("n",), "t", {"a": 1}, Failure("F", "x")).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WHOLE, "1"),
        (WHOLE, "[]"),
        ('"type":"E",', ""),
        ('"type":"E"', '"type":1'),
        ('"message":"m"', '"message":null'),
        ('["n"]', "[1]"),
        ('["n"]', '"n"'),
        ('"traceback":"t"', '"traceback":[]'),
        ('{"a":1}', "[]"),
        ('{"a":1},', '{"a":1},"more":1,'),
        ('"cause":{', '"cause":1,"x":{'),
        ('"type":"E","message":"m"', '"message":"m","type":"E"'),
        ('"cause":null', f'"cause":{Failure("G", "", cause=Failure("H", "")).text}'),
        (WHOLE, WHOLE[:-1]),
    ],
)
def test_what_is_no_failure_is_damage(old: str, new: str) -> None:
    forged = WHOLE.replace(old, new)
    assert forged != WHOLE

    with pytest.raises(Damaged) as caught:
        read_failure(forged)

    assert caught.value.code == "malformed_record"


def test_a_failure_shows_its_type_alone() -> None:
    assert repr(Failure("ValueError", TOKEN)) == "<Failure ValueError>"


@example(message="", notes=[], attributes={"\x00": ""}, secret="0000")  # as JSON writes a zero byte
@example(message="\x00", notes=[], attributes={}, secret="0000")
@given(
    message=st.text(),
    notes=st.lists(st.text()),
    attributes=st.dictionaries(st.text(), st.one_of(st.text(), st.binary(), st.integers(), st.floats(), st.tuples(st.text(), st.none()))),
    secret=st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=4).filter(
        lambda text: len(text.strip()) >= 4
    ),
)
def test_any_exception_comes_back_as_it_was_kept_and_never_with_a_secret(
    message: str, notes: list[str], attributes: dict[str, Any], secret: str
) -> None:
    error = ValueError(message + secret)
    assume(secret.strip() not in Failure("", "").text)  # the words of ours that stand in every failure
    for note in notes:
        error.add_note(note)
    vars(error).update(attributes)
    secrets = SecretFilter({"a secret of ours": secret}) if secret not in "a secret of ours" else PLAIN
    failure = kept(error, secrets)

    assert secrets.declared_in_record(failure.text) is None
    assert secrets is PLAIN or secret.strip() not in failure.message
