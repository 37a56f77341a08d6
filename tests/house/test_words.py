"""One place for each dangerous word: what may be imported, called or written where."""

from __future__ import annotations

import ast
import re

import apsw
import pytest
from house import Source, layered, shipped, stands_in

CLOCK = frozenset({"storage/clock.py"})
PLATFORM = frozenset({"storage/platform.py"})
TURNS = frozenset({"actors/"})
SCHEMA_HASHES = frozenset({"schema/hashes.py"})

SOCKETS = PLATFORM | {"storage/sockets.py", "actors/frames.py", "actors/listener.py", "actors/connection.py", "actors/remote.py"}
"""Other processes: one place makes what they find, the others ask and answer."""

NAMES_ONLY_IN: dict[str, frozenset[str]] = {
    "apsw": frozenset({"storage/"}),
    # Turns: threads, queues and waiting. The registry of inodes is per process and has its one Lock.
    "pykka": TURNS,
    "threading": TURNS,
    "threading.RLock": TURNS | {"storage/registry.py"},
    "_thread": TURNS,
    "threading.Thread": frozenset({"actors/cell.py", "actors/listener.py"}),  # an actor's own; and one a connection, which waits for it
    # Other processes: one place makes what they find, one each asks and answers.
    "socket": SOCKETS,
    "queue": TURNS,
    "concurrent": TURNS,
    "time.sleep": frozenset({"storage/vfs/"}),  # a slow disk
    # Time and chance are handed in.
    "time.time": CLOCK,
    "time.time_ns": CLOCK,
    "time.monotonic": CLOCK,
    "time.monotonic_ns": CLOCK,
    "datetime.datetime.now": CLOCK,
    "datetime.datetime.utcnow": CLOCK,
    "datetime.datetime.today": CLOCK,
    "datetime.date.today": CLOCK,
    "os.urandom": CLOCK,
    "os.getrandom": CLOCK,
    "secrets": CLOCK,
    "uuid.uuid1": CLOCK,
    "uuid.uuid4": CLOCK,
    "random": CLOCK,
    "random.Random": CLOCK | {"actors/policy.py", "storage/vfs/image.py"},  # dice of a seed
    # The platform.
    "ctypes": PLATFORM,
    "fcntl": PLATFORM,
    "os.O_PATH": PLATFORM,
    "os.register_at_fork": frozenset({"storage/forks.py"}),
    "hashlib": SCHEMA_HASHES,
}
"""A name and all below it, and where it may be used. The longest name that fits decides."""

NAMES_NOWHERE = ("pickle", "_pickle", "sqlite3", "pykka.ActorRegistry.stop_all")
"""Not in the benchmarks and examples either."""

RESULTS = frozenset(
    {name for name in dir(apsw) if isinstance(kind := getattr(apsw, name), type) and issubclass(kind, Exception)}
    | {name for names in (apsw.mapping_result_codes, apsw.mapping_extended_result_codes) for name in names if isinstance(name, str)}
) - {"SQLITE_OK"}
"""apsw's exceptions and SQLite's codes for what went wrong."""

IDENTIFIERS_ONLY_IN: dict[str, frozenset[str]] = {
    "sha256": SCHEMA_HASHES,
    "extendedresult": frozenset({"storage/faults.py", "storage/vfs/faults.py"}),  # one understands it, the other says it
}

STRINGS_ONLY_IN: dict[str, frozenset[str]] = {
    r"(?<!-)\bBEGIN\b|(?i:\bbegin (immediate|exclusive|deferred|transaction)\b)": frozenset({"storage/transaction.py"}),
    r"\bCOMMIT\b": frozenset({"storage/transaction.py"}),
    r"\bROLLBACK\b(?! TO)": frozenset({"storage/transaction.py"}),
    r"\bROLLBACK TO\b": frozenset({"storage/savepoint.py"}),
    r"\bSAVEPOINT\b|(?i:\bsavepoint \w+;)": frozenset({"storage/savepoint.py"}),
    r"\bRELEASE\b": frozenset({"storage/savepoint.py"}),
    r"/proc\b": PLATFORM,
    r"\bsha256\b": SCHEMA_HASHES,
    r"\bextendedresult\b": frozenset({"storage/faults.py"}),
}
"""Patterns of text in string literals, and where they may be written. Docstrings are prose and may name anything."""


def strayed_names(source: Source) -> list[str]:
    """Return the uses of a dangerous name outside its place."""
    found = []
    for use in source.uses:
        if use.is_module:
            # Importing a module is allowed wherever something in it is.
            keys = [key for key in NAMES_ONLY_IN if below(use.name, key)]
            keys += [key for key in NAMES_ONLY_IN if keys and below(key, use.name)]
        else:
            keys = sorted((key for key in NAMES_ONLY_IN if below(use.name, key)), key=len)[-1:]
        if keys and not any(stands_in(source.path, NAMES_ONLY_IN[key]) for key in keys):
            found.append(f"{source}:{use.line} uses {use.name}")
    return found


def below(name: str, key: str) -> bool:
    """Return whether *name* is *key* or something in it."""
    return name == key or name.startswith(key + ".")


def strayed_results(source: Source) -> list[str]:
    """Return the uses of an apsw exception or of a SQLite result code outside storage/faults.py.

    A file system under SQLite answers it by raising; that is speech, not judgement. It may not catch them.
    """
    if source.path == "storage/faults.py":
        return []
    uses = [use for use in source.uses if use.name.split(".")[0] == "apsw" and is_result(use.name)]
    if source.path.startswith("storage/vfs/"):
        caught = [node.type for node in ast.walk(source.tree) if isinstance(node, ast.ExceptHandler) and node.type is not None]
        lines = {node.lineno for kind in caught for node in ast.walk(kind) if isinstance(node, ast.Attribute | ast.Name)}
        uses = [use for use in uses if use.line in lines]
    return [f"{source}:{use.line} uses {use.name}" for use in uses]


def is_result(name: str) -> bool:
    """Return whether a name of apsw's is an exception or a code."""
    return any(part in RESULTS for part in name.split(".")[1:])


def strayed_identifiers(source: Source) -> list[str]:
    """Return the dangerous identifiers outside their place."""
    return [
        f"{source}:{line} says {word}"
        for word, line in source.identifiers
        if word in IDENTIFIERS_ONLY_IN and not stands_in(source.path, IDENTIFIERS_ONLY_IN[word])
    ]


def strayed_strings(source: Source) -> list[str]:
    """Return the string literals that say a dangerous word outside its place."""
    return [
        f"{source}:{line} writes {found.group()}"
        for text, line in source.strings
        for pattern, places in STRINGS_ONLY_IN.items()
        if (found := re.search(pattern, text)) and not stands_in(source.path, places)
    ]


def forbidden(source: Source) -> list[str]:
    """Return the uses of what has no place at all: pickle, sqlite3, pykka's proxies and its global stop."""
    names = [f"{source}:{use.line} uses {use.name}" for use in source.uses if any(below(use.name, word) for word in NAMES_NOWHERE)]
    return names + [f"{source}:{line} makes a proxy" for word, line in source.identifiers if word == "proxy"]


@pytest.mark.parametrize("source", layered(), ids=str)
def test_dangerous_tools_stay_in_their_room(source: Source) -> None:
    assert strayed_names(source) == []


@pytest.mark.parametrize("source", layered(), ids=str)
def test_only_faults_knows_what_went_wrong_in_sqlite(source: Source) -> None:
    assert strayed_results(source) == []


@pytest.mark.parametrize("source", layered(), ids=str)
def test_dangerous_words_stay_in_their_room(source: Source) -> None:
    assert strayed_identifiers(source) + strayed_strings(source) == []


@pytest.mark.parametrize("source", shipped(), ids=str)
def test_nothing_pickles_uses_the_other_sqlite_or_makes_a_proxy(source: Source) -> None:
    assert forbidden(source) == []


def test_every_room_that_a_rule_names_is_there() -> None:
    rules = [*NAMES_ONLY_IN.values(), *IDENTIFIERS_ONLY_IN.values(), *STRINGS_ONLY_IN.values()]
    standing = [source.path for source in layered()]

    assert [room for room in sorted(frozenset().union(*rules)) if not any(stands_in(path, frozenset({room})) for path in standing)] == []


def connections_opened(source: Source) -> int:
    """Return how many connections a source opens by apsw's own class. Whoever forks must know of each."""
    calls = [ast.unparse(node.func) for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    return sum(called == "apsw.Connection" or (source.layer == "storage" and called == "Connection") for called in calls)


def test_connections_are_opened_in_one_place() -> None:
    assert {source.path for source in layered() if connections_opened(source)} == {"storage/connection.py"}
    assert connections_opened(Source("storage/x.py", "import apsw\ndb = apsw.Connection('x')")) == 1


def test_the_registry_of_inodes_has_one_lock() -> None:
    (registry,) = (source for source in layered() if source.path == "storage/registry.py")
    made = re.findall(r"^.*\bRLock\(\).*$", ast.unparse(registry.tree), flags=re.MULTILINE)

    # A forked child makes it anew, under the same name.
    assert {line.strip() for line in made} == {"self._lock = RLock()"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("schema/x.py", "import apsw"),
        ("src/freehold/x.py", "from apsw import Connection"),
        ("storage/x.py", "import threading"),
        ("storage/x.py", "from threading import Lock"),
        ("storage/registry.py", "from threading import Thread"),
        ("src/freehold/x.py", "def f():\n    from concurrent.futures import Future"),
        ("actors/x.py", "import time as t\ndeadline = t.monotonic"),
        ("actors/x.py", "from time import sleep"),
        ("schema/x.py", "from datetime import datetime as dt\nnow = dt.now()"),
        ("schema/x.py", "import datetime\nnow = datetime.datetime.now()"),
        ("storage/x.py", "import os\nos.urandom(16)"),
        ("actors/x.py", "import random"),
        ("actors/policy.py", "from random import randint"),
        ("storage/x.py", "import fcntl"),
        ("storage/x.py", "import os\nflags = os.O_PATH | os.O_NOFOLLOW"),
        ("storage/x.py", "from os import register_at_fork"),
        ("storage/x.py", "import hashlib"),
    ],
)
def test_a_tool_outside_its_room_is_found(path: str, text: str) -> None:
    assert len(strayed_names(Source(path, text))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("storage/registry.py", "import threading\nlock = threading.RLock()"),
        ("actors/policy.py", "import random\ndef wait(dice: random.Random) -> float: ..."),
        ("storage/x.py", "import os\nimport time\nos.open, time.gmtime"),
        ("schema/x.py", "key = '-----BEGIN PRIVATE KEY-----'"),
        ("storage/x.py", '"""Nobody but storage/clock.py says time.time or BEGIN."""'),
    ],
)
def test_a_tool_in_its_room_is_not(path: str, text: str) -> None:
    assert strayed_names(Source(path, text)) + strayed_strings(Source(path, text)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("storage/x.py", "import apsw\ntry: ...\nexcept apsw.BusyError: ..."),
        ("storage/x.py", "import apsw\nraise apsw.ReadOnlyError"),
        ("storage/x.py", "from apsw import Error"),
        ("storage/x.py", "import apsw\nx = apsw.SQLITE_BUSY"),
        ("storage/vfs/x.py", "import apsw\ntry: ...\nexcept (OSError, apsw.IOError): ..."),
    ],
)
def test_an_apsw_error_outside_faults_is_found(path: str, text: str) -> None:
    assert len(strayed_results(Source(path, text))) == 1


def test_a_file_system_under_sqlite_may_raise_one() -> None:
    assert strayed_results(Source("storage/vfs/x.py", "import apsw\nraise apsw.ReadOnlyError('no')")) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("storage/x.py", "db.execute('BEGIN IMMEDIATE')"),
        ("storage/x.py", "db.execute('begin immediate')"),
        ("actors/x.py", "db.execute('COMMIT')"),
        ("storage/savepoint.py", "db.execute('ROLLBACK')"),
        ("storage/transaction.py", "db.execute(f'ROLLBACK TO {name}')"),
        ("storage/transaction.py", "db.execute('SAVEPOINT a')"),
        ("storage/x.py", "db.execute(f'RELEASE {name}')"),
        ("storage/x.py", "os.open(f'/proc/self/fd/{fd}', 0)"),
        ("storage/x.py", "from hashlib import sha256"),
        ("storage/x.py", "hashlib.new('sha256')"),
        ("storage/x.py", "getattr(error, 'extendedresult')"),
        ("storage/x.py", "error.extendedresult"),
    ],
)
def test_a_word_outside_its_room_is_found(path: str, text: str) -> None:
    source = Source(path, text)

    assert len(strayed_identifiers(source) + strayed_strings(source)) == 1


@pytest.mark.parametrize(
    "text",
    ["import pickle", "from sqlite3 import connect", "from pykka import ActorRegistry\nActorRegistry.stop_all()", "ref.proxy().value"],
)
def test_what_has_no_room_at_all_is_found(text: str) -> None:
    assert len(forbidden(Source("examples/x.py", text))) == 1
