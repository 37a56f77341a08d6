"""docs/FORMAT.md says what the code does: tables, tags, bounds, codes and rules are the same, and its golden vectors hold in both."""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw
import independent_hashes
import independent_values
import pytest

from freehold.schema import errors, hashes, ids, kinds, lifecycle, limits, roots, steps, tags, values, version
from freehold.schema.ddl import statements
from freehold.storage.frontier import TIME_MS_MAX

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "FORMAT.md").read_text(encoding="utf-8")
WORDS = {word.__name__: word for word in (datetime, date, time, timedelta, timezone, Decimal, UUID, float, frozenset)}
FIELDS = "seq id kind name execution position phase attempt record value root recorded_at".split()


def section(title: str) -> str:
    """Return what stands under a heading, up to the next of the same depth or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[2]


def cells(text: str) -> list[list[str]]:
    """Return the cells of the tables in *text*, without their heads."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("|")]
    ruled = {index for index, row in enumerate(rows) if set("".join(row)) <= set("-|")}
    return [row for index, row in enumerate(rows) if index not in ruled and index + 1 not in ruled]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


GOLDEN: dict[str, Any] = json.loads(block("json"))
EXAMPLES = [(row[2], row[3]) for row in cells(section("Values")) if len(row) == 4]
PLAIN = [(row[0], row[1]) for row in cells(section("Values")) if len(row) == 2]


def test_the_schema_on_the_page_is_the_one_in_a_file() -> None:
    assert block("sql") == statements()


def test_every_table_and_column_is_explained_in_the_order_of_the_schema() -> None:
    db = apsw.Connection(":memory:")
    db.execute(statements())
    tables = [str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rootpage")]

    headed = dict(re.findall(r"^### (\w+): [^\n]*\n(.*?)(?=^#|\Z)", section("Tables"), re.MULTILINE | re.DOTALL))

    assert sorted(headed) == sorted(tables)
    for table, text in headed.items():
        columns = [row[1] for row in db.execute("SELECT * FROM pragma_table_info(?)", (table,))]
        assert [name for row in cells(text) for name in names(row[0])] == columns
        assert all(len(row) == 3 and row[1] for row in cells(text))


def test_every_index_is_named() -> None:
    db = apsw.Connection(":memory:")
    db.execute(statements())
    indices = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")}

    assert set(names(section("Tables").partition("### The indices")[2])) == indices


def test_the_closed_sets_are_the_codes_own() -> None:
    assert f"{version.APPLICATION_ID:#x}" in PAGE.lower()
    assert names(next(row for row in cells(section("Tables")) if row[0] == "`kind`" and "created" in row[1])[1]) == list(kinds.EventKind)
    assert names(next(row for row in cells(section("Tables")) if row[0] == "`status`")[1])[: len(lifecycle.Status)] == list(
        lifecycle.Status
    )
    assert [row[0] for row in cells(section("Records"))] == ["`created`", "`publish`", "`began`", "`settled`", "`step`"]


@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("bytes of the plain content | 0 to {:,} |", limits.OBJECT_BYTES_MAX),
        ("in the order of their names | at most {:,} bytes;", limits.PROPS_BYTES_MAX),
        ("(30 days later, or more) | at most {:,} bytes |", limits.REPLY_BYTES_MAX),
        ("a record of more than {} bytes is an object", limits.RECORD_INLINE_BYTES_MAX),
        ("is a value, of at most {:,} bytes", limits.VALUE_BYTES_MAX),
        ("At most {} levels of containers", limits.VALUE_DEPTH_MAX),
        ("a label of 1 to {} characters", limits.NAME_CHARS_MAX),
        ("a label of 1 to {} characters", limits.REQUEST_ID_CHARS_MAX),
        ("a label of 1 to {} characters", limits.STOP_CODE_CHARS_MAX),
        ("`key/` and a label of 1 to {} characters", limits.STEP_KEY_CHARS_MAX),
        ("a label of 1 to {} characters", limits.IDEMPOTENCY_KEY_CHARS_MAX),
        ("A *failure* is a value of at most {:,} bytes", limits.FAILURE_BYTES_MAX),
        ("count | an integer of at most {:,} (2^62)", limits.COUNT_MAX),
        ("the user's | a label of 0 to {} characters", limits.PROJECT_CHARS_MAX),
        ("have {} MiB or less", limits.FOREIGN_KEYS_WHOLE_BYTES // 2**20),
        ("0 to {} (the end of the year 9999)", TIME_MS_MAX),
    ],
)
def test_a_bound_is_the_codes_own(what: str, number: int) -> None:
    assert what.format(number) in PAGE


def test_the_tags_are_exactly_those_of_the_code() -> None:
    listed = {name for row in cells(section("Values")) if len(row) == 4 for name in names(row[0])}

    assert listed == {*tags._READERS, tags.TUPLE, tags.SET, tags.FROZENSET}
    assert listed == {*independent_values.READ}


@pytest.mark.parametrize(("example", "stored"), EXAMPLES + PLAIN)
def test_a_value_is_stored_as_the_page_says(example: str, stored: str) -> None:
    value, text = eval(names(example)[0], {**WORDS, "UTC": UTC}), names(stored)[0]

    for write, read in ((values.encode, values.decode), (independent_values.write, independent_values.read)):
        back = read(text)
        assert write(value) == write(back) == text
        assert type(back) is type(value)
        assert back == value or math.isnan(back)
    assert values.is_canonical(text)
    assert independent_values.is_canonical(text)


def test_the_page_has_examples_of_both_kinds() -> None:
    assert len(EXAMPLES) > len(tags._READERS)
    assert len(PLAIN) >= 5


@pytest.mark.parametrize("golden", GOLDEN["objects"], ids=lambda golden: golden["kind"])
def test_the_hash_of_an_object_is_the_pages(golden: dict[str, str]) -> None:
    content = bytes.fromhex(golden["content"])

    assert hashes.object_hash(hashes.ObjectKind[golden["kind"].upper()], content).hex() == golden["hash"]
    assert independent_hashes.object_hash(golden["kind"], content).hex() == golden["hash"]


def test_every_kind_of_object_has_a_golden_vector() -> None:
    assert [golden["kind"] for golden in GOLDEN["objects"]] == [kind.name.lower() for kind in hashes.ObjectKind]


def test_the_empty_workspace_is_the_pages() -> None:
    by_kind = {golden["kind"]: golden for golden in GOLDEN["objects"]}

    assert (roots.EMPTY_TREE.hash.hex(), roots.EMPTY_ROOT.hash.hex()) == (GOLDEN["empty_tree"], GOLDEN["empty_root"])
    assert (roots.EMPTY_TREE.data.hex(), roots.EMPTY_ROOT.data.hex()) == (by_kind["tree"]["content"], by_kind["root"]["content"])
    assert (by_kind["tree"]["hash"], by_kind["root"]["hash"]) == (GOLDEN["empty_tree"], GOLDEN["empty_root"])
    assert independent_hashes.tree_of(roots.EMPTY_ROOT.data) == roots.EMPTY_TREE.hash


def test_the_hashes_of_events_are_the_pages() -> None:
    previous = hashes.NO_HASH
    for golden in GOLDEN["events"]:
        fields = fields_of(golden)
        chained = hashes.event_hash(previous, *fields)
        assert chained.hex() == golden["hash"]
        assert independent_hashes.event_hash(previous, fields) == chained
        previous = chained
    assert len(GOLDEN["events"]) == 4


def fields_of(golden: dict[str, Any]) -> list[Any]:
    assert list(golden) == [*FIELDS, "hash"]
    return [bytes.fromhex(golden[name]) if name in ("id", "value", "root") and golden[name] else golden[name] for name in FIELDS]


def test_the_bytes_of_the_first_event_are_the_pages() -> None:
    *lines, last = block("text").splitlines()
    content = bytes.fromhex("".join(line[:47] for line in lines))
    first = GOLDEN["events"][0]

    assert last == f"SHA-256: {first['hash']}"
    assert hashlib.sha256(content).hexdigest() == first["hash"]
    assert independent_hashes.event_bytes(bytes(32), fields_of(first)) == content


@pytest.mark.parametrize("golden", GOLDEN["requests"], ids=lambda golden: golden["parts"][0])
def test_the_digest_of_a_request_is_the_pages(golden: dict[str, Any]) -> None:
    assert hashes.request_digest(*golden["parts"]).hex() == golden["digest"]
    assert independent_hashes.request_digest(*golden["parts"]).hex() == golden["digest"]


@pytest.mark.parametrize("golden", GOLDEN["inputs"], ids=lambda golden: golden["text"])
def test_the_digest_of_an_input_is_the_pages(golden: dict[str, str]) -> None:
    assert values.canonical(values.decode(golden["text"])) == golden["text"]
    assert hashes.input_hash(golden["text"]).hex() == golden["hash"]
    assert independent_hashes.input_hash(golden["text"]).hex() == golden["hash"]


@pytest.mark.parametrize("golden", GOLDEN["steps"], ids=lambda golden: golden["position"])
def test_the_key_of_a_step_is_the_pages(golden: dict[str, str]) -> None:
    parts = golden["run"], bytes.fromhex(golden["first"]), golden["position"]

    assert hashes.step_key(*parts).hex() == golden["key"]
    assert independent_hashes.step_key(*parts).hex() == golden["key"]


def test_the_last_golden_event_is_that_of_a_step() -> None:
    golden = GOLDEN["events"][-1]

    assert golden["position"] == steps.position_of(golden["name"])
    assert steps.read_step(golden["phase"], golden["record"]) == steps.Told(GOLDEN["inputs"][-1]["hash"], result='{"id":7}')


@pytest.mark.parametrize("golden", GOLDEN["ids"], ids=lambda golden: golden["text"])
def test_an_id_is_the_pages(golden: dict[str, Any]) -> None:
    raw = bytes.fromhex(golden["bytes"])

    assert ids.uuid7(golden["time"], bytes.fromhex(golden["random"])) == raw
    assert ids.event_id_text(raw) == golden["text"] == str(UUID(bytes=raw))
    assert UUID(bytes=raw).version == 7


def test_every_rule_that_the_code_names_is_on_the_page_and_no_other() -> None:
    source = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "storage").glob("*.py")))
    said = set(re.findall(r'broken\(\s*"(\w+)"', source)) | set(re.findall(r'rule="(\w+)"', source)) - {"malformed_record"}
    by_the_way = set(re.findall(r'_one\([^\n]*"(\w+)", path\)', source))  # where a row that another names is missing

    recognised = {name for row in cells(section("Recognition")) if len(row) == 3 for name in names(row[2])}
    verified = {names(row[0])[0] for row in cells(section("Verification"))}

    assert said | by_the_way - {"value"} <= recognised | verified
    assert recognised | verified <= said | by_the_way


def test_every_code_on_the_page_is_one_of_the_closed_table() -> None:
    told = {name for row in cells(section("Recognition")) for name in names(row[1]) if len(row) == 3}

    assert told <= set(errors.CODES)
    assert {"not_a_run", "partial", "newer_version", "older_version", "incomplete_version", "damaged", "another_run"} <= told
