"""Every number is a bound that some code keeps to, and they fit together and with the tables."""

from __future__ import annotations

import re

import pytest
from house import layered

from freehold.schema import limits
from freehold.schema.ddl import statements

LIMITS = {name: value for name, value in vars(limits).items() if name.isupper()}


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_a_positive_number(name: str) -> None:
    assert type(LIMITS[name]) in (int, float)
    assert LIMITS[name] > 0


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_kept_to_by_some_code(name: str) -> None:
    users = [
        source.path for source in layered() if source.path != "schema/limits.py" and any(word == name for word, _ in source.identifiers)
    ]

    assert users


def test_the_tables_say_the_same_numbers() -> None:
    bounds = {table: re.findall(r"length\(id\) BETWEEN 1 AND (\d+)", text) for table, text in tables().items()}

    assert bounds["run"] == [str(limits.RUN_ID_CHARS_MAX)]
    assert bounds["request"] == [str(limits.REQUEST_ID_CHARS_MAX)]
    assert f"length(reply) <= {limits.REPLY_BYTES_MAX}" in tables()["request"]


def tables() -> dict[str, str]:
    return {found[1]: found[0] for found in re.finditer(r"CREATE TABLE (\w+) .*?STRICT", statements(), re.DOTALL)}


def test_the_limits_fit_together() -> None:
    assert limits.RECORD_INLINE_BYTES_MAX < limits.VALUE_BYTES_MAX < limits.OBJECT_BYTES_MAX
    assert limits.PROPS_BYTES_MAX <= limits.VALUE_BYTES_MAX
    assert limits.REPLY_BYTES_MAX <= limits.VALUE_BYTES_MAX
    assert limits.BATCH_TURNS_MAX <= limits.MAILBOX_MESSAGES_MAX
    assert limits.BATCH_BYTES_MAX <= limits.MAILBOX_BYTES_MAX
    assert limits.VALUE_BYTES_MAX <= limits.MAILBOX_BYTES_MAX  # else the largest value could never be sent
    assert limits.BUSY_TIMEOUT_MS / 1000 < limits.TRANSACTION_TIMEOUT_S < limits.ASK_TIMEOUT_S
    assert limits.OPENER_WAIT_S < limits.ASK_TIMEOUT_S
    assert limits.BATCH_SECONDS_MAX < limits.OPENER_WAIT_S
    assert limits.INLINE_BYTES_MAX < limits.CHUNK_BYTES < limits.DIRTY_BYTES_MAX  # a full chunk is never inline
    assert limits.CHUNK_BYTES <= limits.OBJECT_BYTES_MAX
