"""What others made is asked past its class, which may lie or raise."""

from __future__ import annotations

import pytest
from unruly import NAMES, raised_by, refuse, unruly

from freehold.schema.foreign import cause_of, full_name, is_a, members_of, origin_of, traceback_of, type_name


@pytest.mark.parametrize("name", NAMES)
def test_an_exception_is_known_whatever_its_class_does(name: str) -> None:
    error: Exception = unruly(name)
    cause = KeyError("the cause")

    def fail() -> None:
        raise error from cause

    assert raised_by(fail) is error
    assert is_a(error, Exception)
    assert not is_a(error, KeyError | OSError)
    assert type_name(error) == "Unruly"
    assert cause_of(error) is origin_of(error) is cause
    assert full_name(error) == "unruly.Unruly"
    assert members_of(error) == {}
    trace = traceback_of(error)
    assert trace is not None
    assert trace.tb_frame.f_code.co_name == "raised_by"


def test_a_class_that_it_only_pretends_to_be_is_not_believed() -> None:
    class Pretender(Exception):
        __class__ = KeyError  # type: ignore[assignment]

    assert isinstance(Pretender(), KeyError)
    assert not is_a(Pretender(), KeyError)


def test_a_name_that_the_class_of_a_class_tells_is_not_asked() -> None:
    class Meta(type):
        __name__ = property(refuse)

    assert type_name(Meta("Real", (Exception,), {})()) == "Real"
