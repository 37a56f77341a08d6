"""What goes into a value comes out of it, or is refused with the path to it and without being shown."""

# ruff: noqa: D101, DTZ001  the classes are samples, named after what they are; moments without a zone are values too

from __future__ import annotations

import dataclasses
import math
import traceback
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from enum import Enum, IntEnum, StrEnum
from hashlib import sha256
from typing import Any, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.schema.errors import Damaged, ValueRefused
from freehold.schema.limits import VALUE_BYTES_MAX, VALUE_DEPTH_MAX
from freehold.schema.values import Sealed, canonical, decode, decode_as, encode, is_canonical, seal
from freehold.schema.walk import CARE, plain_size

CANARY = "kanarienvogel"
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
key = text | st.sampled_from(["$", "$$", "$tuple", "$$int", "a"])
offset = st.timedeltas(min_value=timedelta(hours=-23), max_value=timedelta(hours=23)).map(timezone)
scalar = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats()
    | text
    | st.binary(max_size=12)
    | st.datetimes(timezones=st.none() | offset | st.just(UTC))
    | st.dates()
    | st.times(timezones=st.none() | offset)
    | st.timedeltas()
    | st.decimals()
    | st.uuids()
)
hashable = st.recursive(
    # Python itself does not take a signalling NaN into a set.
    scalar.filter(lambda leaf: not (isinstance(leaf, Decimal) and leaf.is_snan())),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
value = st.recursive(
    scalar | hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(key, inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(hashable, max_size=3)
    ),
    max_leaves=12,
)


def short(member: object) -> str:
    """Return a name for a parameter that may be long, or no text at all."""
    return ascii(hex(member) if type(member) is int else member)[:40]


def spelled(member: Any) -> Any:
    """Return a value so that `==` tells types, signs, folds and NaNs apart."""
    match member:
        case dict():
            return {name: spelled(inner) for name, inner in member.items()}
        case list() | tuple():
            return type(member), [spelled(inner) for inner in member]
        case set() | frozenset():
            return type(member), sorted(repr(spelled(inner)) for inner in member)
        case datetime() | time():
            return type(member), member.isoformat(), member.fold
        case int():
            return type(member), hex(member)
        case _:
            return type(member), repr(member)


def refused(call: Callable[[], object], path: str, code: str = "value_refused") -> ValueRefused:
    """Return the refusal of *call*, after looking for its path, its code and the canary."""
    with pytest.raises(ValueRefused) as caught:
        call()
    error = caught.value
    assert str(error).startswith(f"{path}: ")
    assert error.details["path"] == path
    assert error.code == code
    for shown in (str(error), repr(error), str(error.record()), "".join(traceback.format_exception(error))):
        assert CANARY not in shown
    assert error.__context__ is None
    return error


def damaged(stored: str) -> Damaged:
    """Return how *stored* is turned down; not even a bad text is shown."""
    with pytest.raises(Damaged) as caught:
        decode(stored)
    assert caught.value.code == "malformed_record"
    assert CANARY not in "".join(traceback.format_exception(caught.value)) + str(caught.value.record())
    assert not is_canonical(stored)
    return caught.value


@settings(max_examples=300)
@given(value)
def test_what_goes_in_comes_out(given_value: Any) -> None:
    record = encode(given_value)

    assert spelled(decode(record)) == spelled(given_value)
    assert encode(decode(record)) == record
    assert is_canonical(record)


@settings(max_examples=150)
@given(value)
def test_sealing_is_encoding_and_decoding_in_one(given_value: Any) -> None:
    sealed = seal(given_value)

    assert sealed.record == encode(given_value)
    assert spelled(sealed.data) == spelled(decode(sealed.record))


@settings(max_examples=150)
@given(st.dictionaries(key, value, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter_to_the_canonical_text(given_value: dict[str, Any], random: Any) -> None:
    items = list(given_value.items())
    random.shuffle(items)

    assert canonical(dict(items)) == canonical(given_value)
    assert spelled(decode(canonical(given_value))) == spelled(given_value)


def test_the_order_of_keys_is_kept_as_given() -> None:
    assert encode({"b": 1, "a": {"d": 2, "c": 3}}) == '{"b":1,"a":{"d":2,"c":3}}'
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == '{"a":{"c":3,"d":2},"b":1}'


@pytest.mark.parametrize(
    "number",
    [
        9007199254740993,
        2**63 - 1,
        2**63,
        2**64,
        -(2**63),
        -(2**63) - 1,
        int(sha256(b"x").hexdigest(), 16),
        10**5000,
        float("nan"),
        float("inf"),
        float("-inf"),
        -0.0,
        1.0,
        5e-324,
    ],
    ids=short,
)
def test_no_number_changes(number: float) -> None:
    for put in (number, {"a": [number]}, [number], (number,), {number}):
        assert spelled(decode(encode(put))) == spelled(put)
        assert spelled(seal(put).data) == spelled(put)
        assert is_canonical(encode(put))
    assert decode(encode([number]))[0] == number or math.isnan(number)


def test_an_overflowing_product_is_kept_as_infinity() -> None:
    assert seal({"a": [1e308 * 10]}) == Sealed('{"a":[{"$float":"Infinity"}]}', {"a": [math.inf]})


@pytest.mark.parametrize(
    ("member", "record"),
    [
        (b"\x00ab", '{"$bytes":"AGFi"}'),
        (bytearray(b"ab"), '{"$bytes":"YWI="}'),
        (memoryview(b"abcd")[::2], '{"$bytes":"YWM="}'),
        (datetime(2024, 5, 6, 7, 8, 9, 10), '{"$datetime":"2024-05-06T07:08:09.000010"}'),
        (datetime(2024, 5, 6, tzinfo=UTC), '{"$datetime":"2024-05-06T00:00:00.000000+00:00"}'),
        (datetime(2024, 10, 27, 2, 30, fold=1), '{"$datetime":["2024-10-27T02:30:00.000000",1]}'),
        (time(1, tzinfo=timezone(-timedelta(microseconds=7))), '{"$time":"01:00:00.000000-00:00:00.000007"}'),
        (date(1, 1, 1), '{"$date":"0001-01-01"}'),
        (time(1, 2, 3), '{"$time":"01:02:03.000000"}'),
        (timedelta(microseconds=-1), '{"$timedelta":[-1,86399,999999]}'),
        (Decimal("-0E+7"), '{"$decimal":"-0E+7"}'),
        (Decimal("sNaN1"), '{"$decimal":"sNaN1"}'),
        (UUID(int=7), '{"$uuid":"00000000-0000-0000-0000-000000000007"}'),
        ((1, [2]), '{"$tuple":[1,[2]]}'),
        ({"b", "a", 1}, '{"$set":["a","b",1]}'),
        (frozenset(), '{"$frozenset":[]}'),
        (2**64, '{"$int":"0x10000000000000000"}'),
        (-(2**64), '{"$int":"-0x10000000000000000"}'),
        (math.nan, '{"$float":"NaN"}'),
    ],
)
def test_what_json_cannot_say_is_tagged(member: object, record: str) -> None:
    assert encode(member) == record
    assert encode({"deep": [member]}) == f'{{"deep":[{record}]}}'
    assert encode(decode(record)) == record


@pytest.mark.parametrize(
    ("given_value", "record"),
    [
        ({"$int": "0x1"}, '{"$$int":"0x1"}'),
        ({"$": 1}, '{"$$":1}'),
        ({"$$$x": {"$y": None}}, '{"$$$$x":{"$$y":null}}'),
        ({"$a": 1, "b": 2}, '{"$a":1,"b":2}'),
        ({"$a": 1, "b": (1,)}, '{"$a":1,"b":{"$tuple":[1]}}'),
        ([{"$set": [1, 1]}], '[{"$$set":[1,1]}]'),
        ({"a": "$int"}, '{"a":"$int"}'),
    ],
)
def test_a_user_s_own_dollar_key_is_escaped(given_value: object, record: str) -> None:
    assert seal(given_value) == Sealed(record, given_value)


def test_a_set_is_written_in_one_order() -> None:
    names = [f"n{number}" for number in range(50)]

    assert encode(set(names)) == encode(set(names[25:]) | set(names[:25]))
    assert encode(frozenset(names)) == '{"$frozenset":[' + ",".join(sorted(f'"{name}"' for name in names)) + "]}"


class Colour(Enum):
    RED = "red"


class Mixed(Enum):
    PAIR = ("a", 1)


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    YES = "yes"


class Text(str):
    __slots__ = ()


class Liar(str):
    __slots__ = ()

    def __str__(self) -> str:
        return CANARY


class Number(int):
    pass


class Share(float):
    pass


class Names(list[Any]):
    pass


Point = namedtuple("Point", ["x", "y"])  # noqa: PYI024  the untyped kind is what is tried


class Job(msgspec.Struct, tag="job", rename="camel"):
    job_name: str
    tries: int = 1


class Row(msgspec.Struct, array_like=True):
    x: int
    y: int


@dataclasses.dataclass
class Order:
    item: str
    at: datetime
    tags: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class Frozen:
    item: str


class Person(NamedTuple):
    name: str
    born: date


class Settings(TypedDict):
    name: str
    size: Decimal


@pytest.mark.parametrize(
    ("given_value", "same_as"),
    [
        (Colour.RED, "red"),
        (Mixed.PAIR, ("a", 1)),
        (Level.LOW, 1),
        (Word.YES, "yes"),
        (Text("a"), "a"),
        (Liar("a"), "a"),
        ({Liar("a"): 1}, {"a": 1}),
        (Number(3), 3),
        (Number(2**70), 2**70),
        (Share(1.0), 1.0),
        (Names([Names()]), [[]]),
        (Point(1, 2), (1, 2)),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, {"a": [1]}), {"a": [1]}),
        ({Text("k"): Text("v")}, {"k": "v"}),
        ({Word.YES: Level.LOW}, {"yes": 1}),
        (Job("x"), {"type": "job", "jobName": "x", "tries": 1} | {"type": "job"}),
        (Row(1, 2), [1, 2]),
        (Frozen("x"), {"item": "x"}),
        ({Level.LOW, 2}, {1, 2}),
    ],
)
def test_a_subclass_is_taken_as_its_base(given_value: object, same_as: object) -> None:
    assert spelled(seal(given_value).data) == spelled(same_as)
    assert seal(given_value).record == encode(same_as)


def test_an_ordered_dict_keeps_its_own_order() -> None:
    ordered = OrderedDict(a=1, b=2)
    ordered.move_to_end("a")

    assert encode(ordered) == '{"b":2,"a":1}'


def test_members_of_a_set_that_become_equal_are_one() -> None:
    assert decode(encode({Colour.RED, "red"})) == {"red"}
    assert is_canonical(encode({Level.LOW, Mixed.PAIR, ("a", 1.0)}))


@pytest.mark.parametrize(
    ("given_value", "type_"),
    [
        (Job("x", 3), Job),
        (Row(1, 2), Row),
        (Order("x", datetime(2024, 1, 1, tzinfo=UTC), {"a"}), Order),
        (Person("x", date(2000, 1, 1)), Person),
        ({"name": "x", "size": Decimal("1.50")}, Settings),
        (Colour.RED, Colour),
        (Level.LOW, Level),
        ([Job("x")], list[Job]),
        ({"a": Order("x", datetime(2024, 1, 1))}, dict[str, Order]),
        (2**80, int),
        (b"ab", bytes),
        ({UUID(int=1)}, set[UUID]),
        (None, Job | None),
    ],
)
def test_a_typed_value_comes_back_by_its_annotation(given_value: object, type_: Any) -> None:
    made: object = decode_as(encode(given_value), type_)

    assert made == given_value
    assert type(made) is type(given_value)


class Picky(msgspec.Struct):
    name: str

    def __post_init__(self) -> None:
        if self.name == CANARY:
            raise ValueError(f"not {self.name} - at `$.{self.name}`")


class Rude(msgspec.Struct):
    name: str

    def __post_init__(self) -> None:
        if self.name == CANARY:
            raise LookupError(self.name)


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""


@pytest.mark.parametrize(
    ("given_value", "type_", "path"),
    [
        ({"item": CANARY, "at": CANARY}, Order, "$.at"),
        ([{"type": "job", "jobName": CANARY, "tries": CANARY}], list[Job], "$[0].tries"),
        ({CANARY: CANARY}, dict[str, int], "$[...]"),
        (CANARY, Colour, "$"),
        ({"name": CANARY}, Picky, "$"),
        ({"name": CANARY}, Rude, "$"),
        ({CANARY: 1}, Strict, "$"),
        ({f"x` - at `$.{CANARY}": 1}, Strict, "$"),
        (CANARY, Callable[[], int], "$"),
    ],
)
def test_a_value_of_another_type_is_refused_without_being_shown(given_value: object, type_: Any, path: str) -> None:
    refused(lambda: decode_as(encode(given_value), type_), path)


class NoOffset(tzinfo):
    def utcoffset(self, moment: datetime | None) -> None:
        return None

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> None:
        return None


class Nano(datetime):
    """Holds more than its base, as the moments of some libraries do."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nano) and super().__eq__(other)

    __hash__ = datetime.__hash__


class Nameless:
    def __repr__(self) -> str:
        return CANARY


@dataclasses.dataclass
class Unset:
    a: int = dataclasses.field(init=False)


@dataclasses.dataclass
class Ready:
    a: int = 1


Strange = type(f"{CANARY} !", (), {})
LONE = f"{CANARY}\ud800"


@pytest.mark.parametrize(
    ("given_value", "path"),
    [
        (Nameless(), "$"),
        ({"summary": Nameless()}, "$.summary"),
        ({"jobs": [{"a": 1}, {"b-c_2": Nameless()}]}, "$.jobs[1].b-c_2"),
        ({f"{CANARY} with spaces": Nameless()}, "$.*"),
        ({CANARY * 4: Nameless()}, "$.*"),
        ({"2a": Nameless()}, "$.*"),
        ({"ä": Nameless()}, "$.*"),
        ({"": Nameless()}, "$.*"),
        ({"a\n": Nameless()}, "$.*"),
        (("a", Nameless()), "$[1]"),
        ({"s": {Nameless()}}, "$.s[*]"),
        ({"s": {Frozen(CANARY)}}, "$.s"),
        ([Strange()], "$[0]"),
        ({"x": msgspec.UNSET}, "$.x"),
        ({"x": Nameless}, "$.x"),
        ({"x": Order}, "$.x"),
        ({"x": Ready}, "$.x"),
        ({"x": 1j}, "$.x"),
        ({"x": range(3)}, "$.x"),
        ({"x": Unset()}, "$.x"),
        ({"o": Order("a", Nameless())}, "$.o.at"),  # type: ignore[arg-type]
        (LONE, "$"),
        ({"t": [LONE]}, "$.t[0]"),
        ({LONE: 1}, "$.*"),
        ({1: CANARY}, "$.*"),
        ({"a": {None: CANARY}}, "$.a.*"),
        ({b"k": CANARY, "z": b""}, "$.*"),
        ({"at": time(1, tzinfo=ZoneInfo("Europe/Berlin"))}, "$.at"),
        ({"at": datetime(2024, 1, 1, tzinfo=NoOffset())}, "$.at"),
        ({"at": Nano(2024, 1, 1)}, "$.at"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_path(given_value: object, path: str) -> None:
    for call in (encode, canonical, seal):
        error = refused(lambda call=call: call(given_value), path)  # type: ignore[misc]
        assert str(error).endswith("; nothing was changed")


def test_the_message_says_what_to_do() -> None:
    error = refused(lambda: encode({"summary": object()}), "$.summary")

    assert str(error) == "$.summary: object cannot be stored; use plain values, or write it to a file; nothing was changed"
    assert error.details == {"path": "$.summary", "type": "object"}


def test_a_released_buffer_is_refused() -> None:
    buffer = memoryview(b"ab")
    buffer.release()

    refused(lambda: encode([buffer]), "$[0]")


def test_two_keys_that_are_one_text_are_refused() -> None:
    class Odd(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = str.__hash__

    refused(lambda: encode({Odd("a"): 1, Odd("a"): 2}), "$.a")


def nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    """Return a value of so many levels."""
    inner: Any = 1
    for _ in range(levels):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: [inner],
        lambda inner: {"a": inner},
        lambda inner: (inner,),
        lambda inner: frozenset({inner}),
        lambda inner: {"$a": inner},
    ],
)
def test_a_hundred_levels_are_stored_and_one_more_is_refused(wrap: Callable[[Any], Any]) -> None:
    deepest = nested(VALUE_DEPTH_MAX, wrap)

    assert seal(deepest).data == deepest
    with pytest.raises(ValueRefused) as caught:
        seal(nested(VALUE_DEPTH_MAX + 1, wrap))
    assert caught.value.code == "value_too_deep"


def test_a_value_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    wheel: dict[str, Any] = {"a": 1}
    wheel["wheel"] = (wheel, wheel)
    wide: list[Any] = []
    wide.extend([wide] * 1000)

    refused(lambda: seal(ring), "$" + "[0]" * 16 + "…", "value_too_deep")
    refused(lambda: seal(wheel), "$" + ".wheel[0]" * 8 + "…", "value_too_deep")
    refused(lambda: seal(wide), "$" + "[0]" * 16 + "…", "value_too_deep")


@pytest.mark.parametrize(
    "make",
    [
        lambda size: "x" * (size - 2),
        lambda size: ["x" * (size - 8), "é"],
        lambda size: {"a": "x" * (size - 8)},
        lambda size: {"a": ("x" * (size - 21),)},
        lambda size: [1, 1] * ((size - 2) // 4) + [22] * (size % 4 // 3),
    ],
)
@pytest.mark.parametrize("limit", [1000, 1001])
def test_the_limit_is_exact(make: Callable[[int], object], limit: int) -> None:
    record = encode(make(limit))
    size = len(record.encode())

    assert encode(make(limit), bytes_max=size) == record
    assert seal(make(limit), bytes_max=size + 1).record == record
    with pytest.raises(ValueRefused) as caught:
        seal(make(limit), bytes_max=size - 1)
    assert caught.value.code == "value_too_large"


def test_a_value_of_the_greatest_size_is_stored() -> None:
    assert len(encode("x" * (VALUE_BYTES_MAX - 2))) == VALUE_BYTES_MAX
    error = refused(lambda: encode("x" * (VALUE_BYTES_MAX - 1)), "$", "value_too_large")

    assert str(VALUE_BYTES_MAX + 1) in str(error)
    assert str(VALUE_BYTES_MAX) in str(error)
    assert "to a file" in str(error)
    assert error.details["limit"] == VALUE_BYTES_MAX


class Vast(bytearray):
    """Says that it is huge: to write it would need its content, to refuse it must not."""

    def __len__(self) -> int:
        return 1_200_000_000


def test_a_huge_value_is_refused_before_it_is_copied() -> None:
    megabyte = "x" * 2**20
    shared: Any = [0] * 10
    for _ in range(50):
        shared = [shared] * 10

    refused(lambda: encode({"a": Vast()}), "$.a", "value_too_large")
    refused(lambda: encode({"parts": [megabyte] * 1200}), "$.parts[15]", "value_too_large")
    refused(lambda: encode([None] * (VALUE_BYTES_MAX // 2 + 1)), "$", "value_too_large")
    refused(
        lambda: encode(dict.fromkeys(map(str, range(VALUE_BYTES_MAX // 50 + 1)), 1), bytes_max=VALUE_BYTES_MAX // 10),
        "$",
        "value_too_large",
    )
    refused(lambda: encode([1 << (VALUE_BYTES_MAX * 4)]), "$[0]", "value_too_large")
    with pytest.raises(ValueRefused, match="at least 16"):
        encode({"shared": shared}, bytes_max=160_000)


def test_a_value_made_of_escapes_is_measured_as_it_is_written() -> None:
    refused(lambda: encode(["\x00" * 100], bytes_max=500), "$", "value_too_large")


def test_a_nearly_full_call_stack_is_a_refusal_too() -> None:
    def dive(levels: int) -> None:
        if levels:
            dive(levels - 1)
        else:
            encode(nested(60, lambda inner: [inner]))

    import sys

    with pytest.raises(ValueRefused) as caught:
        for levels in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
            dive(levels)
    assert caught.value.code == "value_too_deep"


def test_a_nearly_full_call_stack_is_not_the_text_s_fault() -> None:
    import sys

    text = encode(nested(60, lambda inner: (inner,)))

    def dive(levels: int) -> None:
        if levels:
            dive(levels - 1)
        else:
            decode(text)

    with pytest.raises(RecursionError):
        for levels in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
            dive(levels)


def test_what_is_too_wide_is_not_looked_at_member_by_member() -> None:
    assert plain_size([1] * 100, 1000) > 0
    assert plain_size([1] * 100, 100) == CARE


def test_data_is_detached_from_what_the_caller_holds() -> None:
    for held in ({"a": [1], "b": {"c": 2}}, {"a": [1], "b": {"c": 2}, "t": (1,)}):
        sealed = seal(held)
        before = decode(sealed.record)
        held["a"].append(5)  # type: ignore[attr-defined]
        held["b"]["c"] = 6  # type: ignore[index]

        assert sealed.data == before


@pytest.mark.parametrize(
    "stored",
    [
        f'{{"$unknown":"{CANARY}"}}',
        f'{{"\\u0024unknown":"{CANARY}"}}',
        f'[{{"a":{{"$int":"{CANARY}"}}}}]',
        '{"$int":"0x5"}',
        '{"$int":"18446744073709551616"}',
        '{"$int":true}',
        '{"$int":null}',
        '{"$int":"0x1_0000_0000_0000_0000"}',
        '{"$float":"1.5"}',
        '{"$float":"nan"}',
        '{"$float":null}',
        '{"$bytes":"YWI"}',
        '{"$bytes":"YWJ="}',
        '{"$bytes":"Y W I="}',
        '{"$bytes":5}',
        '{"$datetime":"2024-05-06"}',
        '{"$datetime":"2024-05-06T07:08:09.000010Z"}',
        '{"$datetime":["2024-10-27T02:30:00.000000",0]}',
        '{"$datetime":["2024-10-27T02:30:00.000000",2]}',
        '{"$datetime":["2024-10-27T02:30:00.000000",true]}',
        '{"$datetime":[]}',
        '{"$date":"20240506"}',
        '{"$date":{}}',
        '{"$time":"01:02"}',
        '{"$timedelta":[0,86400,0]}',
        '{"$timedelta":[true,0,0]}',
        '{"$timedelta":[0.0,0,0]}',
        '{"$timedelta":[999999999999,0,0]}',
        '{"$timedelta":{"days":1}}',
        '{"$decimal":"1e5"}',
        '{"$decimal":"abc"}',
        '{"$decimal":1}',
        '{"$uuid":"{00000000-0000-0000-0000-000000000007}"}',
        '{"$uuid":7}',
        '{"$tuple":{}}',
        '{"$set":[1,1]}',
        '{"$set":[2,1]}',
        '{"$set":[1,1.0]}',
        '{"$set":[[]]}',
        '{"$set":5}',
        '{"$frozenset":[{"a":1}]}',
        '{"$":1}',
        "",
        CANARY,
        "NaN",
        "1e400",
        '{"a":1',
        '"\ud800"',
        '"\\ud800"',
        "9" * 5000,
        "[" * 5000 + "]" * 5000,
        '{"$tuple":[' * 900 + "]}" * 900,
    ],
    ids=short,
)
def test_stored_text_that_we_did_not_write_is_damage(stored: str) -> None:
    error = damaged(stored)

    assert str(error).endswith("it was left alone")


@pytest.mark.parametrize(
    "stored", ["[1, 2]", '{"a":1,"a":2}', "18446744073709551616", "-0", "1E5", '"\\u0041"', "[" * 150 + "]" * 150], ids=short
)
def test_text_that_another_writer_would_write_is_not_canonical(stored: str) -> None:
    assert not is_canonical(stored)


@settings(max_examples=200)
@given(value, st.integers(min_value=0), st.sampled_from('"$[]{}x0,:'))
def test_a_changed_text_is_read_or_damage_and_nothing_else(given_value: Any, place: int, change: str) -> None:
    record = encode(given_value)
    place %= len(record)
    changed = record[:place] + change + record[place + 1 :]

    try:
        decode(changed)
    except Damaged:
        assert not is_canonical(changed)


def test_a_decimal_does_not_depend_on_the_context() -> None:
    number = Decimal("1E+20")
    with localcontext() as context:
        context.capitals = 0
        context.prec = 2
        record = encode([number, Decimal("1.23456")])

        assert decode(record) == [number, Decimal("1.23456")]
    assert record == '[{"$decimal":"1E+20"},{"$decimal":"1.23456"}]'


def test_an_aware_moment_keeps_its_offset() -> None:
    moment = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    back = decode(encode(moment))

    assert back.astimezone(UTC) == moment.astimezone(UTC)
    assert back.utcoffset() == timedelta(hours=1)
    assert back.fold == 1


def test_the_zero_character_is_text() -> None:
    assert seal({"a\x00": "\x00"}) == Sealed('{"a\\u0000":"\\u0000"}', {"a\x00": "\x00"})


def test_a_repr_shows_no_value() -> None:
    assert CANARY not in repr(seal({"a": CANARY})) + str(seal([CANARY]))
