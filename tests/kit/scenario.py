"""What is done to a run while its disk is watched or made to fail: every way of writing that there is, each a short story."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from book import Book, Line, State
from driver import Driver, applied, ask_for, begin, end, intend, long, note, repeated, settle, work
from filing import Abandoned, Things, noise, publishing, stage
from verdict import judge

from freehold.files import Files
from freehold.schema.limits import PIECES_BYTES_MAX
from freehold.schema.operations import Append, BeginExecution, Mkdir, Operation, Rename, Settle, Touch, WriteBytes
from freehold.storage.path import RunPath, resolve
from freehold.storage.vfs.image import KINDS, CrashImage, crash_image
from freehold.storage.vfs.record import Record
from freehold.storage.vfs.recorder import Recorder


def creating(driver: Driver) -> None:
    """Create a run, and the folder for it."""
    driver.create()
    driver.own()
    driver.close()


def appending(driver: Driver) -> None:
    """Append notes, three in one batch among them."""
    driver.own()
    for number in range(3):
        driver.append("short", str(number))
    driver.turns(note("one"), note("two"), note("three"))
    driver.append("last")
    driver.close()


def requesting(driver: Driver) -> None:
    """Append by request ids, and ask one of them again."""
    driver.own()
    for number in range(4):
        driver.append("once", str(number), f"request {number}")
    driver.repeat("once", "2", "request 2")
    driver.close()


def spilling(driver: Driver) -> None:
    """Append records that are objects of their own; one is there already."""
    driver.own()
    for number in (1, 2, 1):
        driver.append("long", long(number))
    driver.append("longer", long(3, 40_000))
    driver.close()


def transacting(driver: Driver) -> None:
    """Append several notes in one callable."""
    driver.own()
    driver.turns(work(("first", "1"), ("second", long(4)), ("third", "3")))
    driver.turns(work(("fourth", "4")), note("fifth"))
    driver.close()


def executing(driver: Driver) -> None:
    """Begin executions and settle them; the last one is running when its owner closes."""
    driver.own()
    for status in ("suspended", "failed"):
        driver.turns(begin())
        driver.append("done")
        driver.turns(settle(status))
    driver.turns(begin())
    driver.close()


def taking_over(driver: Driver) -> None:
    """Take over what a dead owner has left in the -wal, with its execution running; then once more, cleanly left."""
    driver.own()
    driver.append("alive")
    driver.close()
    driver.own()
    driver.append("again")
    driver.close()


def checkpointing(driver: Driver) -> None:
    """Bring the -wal home after every other turn, so that it starts over in between."""
    driver.own()
    for number in range(6):
        driver.append("kept", long(number, 6_000))
        if number % 2:
            driver.checkpoint()
    driver.close()


def publishing_files(driver: Driver) -> None:
    """Publish files that are inline, a chunk and an index; rename their folder; fail; publish beside a note in one batch."""
    small, chunk, index = b"small", noise(20_000), noise(150_000)

    def create(files: Files) -> None:
        files.mkdir("d")
        for name, content in (("small", small), ("chunk", chunk), ("index", index)):
            files.write_bytes(f"d/{name}", content)

    def rename(files: Files) -> None:
        files.rename("d", "e")
        files.write_bytes("e/small", b"other")

    def fail(files: Files) -> None:
        files.write_bytes("lost", chunk)
        files.rmdir("e")

    driver.own()
    created: Things = {"d": "/", "d/chunk": chunk, "d/index": index, "d/small": small}
    driver.turns(publishing(driver, "create", create, created))
    renamed: Things = {"e": "/", "e/chunk": chunk, "e/index": index, "e/small": b"other"}
    driver.turns(publishing(driver, "rename", rename, renamed))
    driver.turns(publishing(driver, "fail", fail, None))
    added = {**renamed, "new": b""}
    driver.turns(note("beside"), publishing(driver, "add", lambda files: files.touch("new"), added))
    driver.close()


def publishing_in_blocks(driver: Driver) -> None:
    """Publish blocks: one that is abandoned after most of it went ahead, one that takes it up, one that comes to another's root."""
    large = noise(PIECES_BYTES_MAX + 100_000)

    def write(files: Files) -> None:
        files.mkdir("d")
        files.write_bytes("d/large", large)

    def abandon(files: Files) -> None:
        write(files)
        raise Abandoned

    def move_beside(files: Files) -> None:
        files.rename("d", "e")
        driver.turns(publishing(driver, "beside", lambda others: others.write_bytes("theirs", b"1"), {**written, "theirs": b"1"}))
        files.write_bytes("mine", b"2")

    driver.own()
    stage(driver, "abandoned", abandon, {})
    written: Things = {"d": "/", "d/large": large}
    stage(driver, "large", write, written)
    stage(driver, "move", move_beside, {"e": "/", "e/large": large, "mine": b"2", "theirs": b"1"})
    driver.close()


def publishing_elsewhere(driver: Driver) -> None:
    """Publish blocks by messages alone: one that is large, one that meets another's root at its end and is brought to it."""
    large = noise(PIECES_BYTES_MAX + 100_000)

    def write(files: Files) -> None:
        files.mkdir("d")
        files.write_bytes("d/large", large)

    def move_beside(files: Files) -> None:
        files.rename("d", "e")
        driver.turns(publishing(driver, "beside", lambda others: others.write_bytes("theirs", b"1"), {**written, "theirs": b"1"}))
        files.write_bytes("mine", noise(20_000))

    driver.own()
    written: Things = {"d": "/", "d/large": large}
    stage(driver, "large", write, written, by_messages=True)
    stage(driver, "move", move_beside, {"e": "/", "e/large": large, "mine": noise(20_000), "theirs": b"1"}, by_messages=True)
    driver.close()


def applying(driver: Driver) -> None:
    """Carry out transactions as data, with notes, files and executions in them, alone and beside a note in one batch."""
    chunk = noise(20_000)
    steps: list[Operation] = [Append("note", "1"), Mkdir("d"), WriteBytes("d/chunk", chunk), Append("named", "2"), Touch("e")]
    driver.own()
    lines = (Line("note", "note", "1"), Line("note", "named", "2"), Line("publish", "files"))
    driver.turns(applied(steps, lines, files={"d": "/", "d/chunk": chunk, "e": b""}))
    more: list[Operation] = [BeginExecution(), Rename("d/chunk", "chunk"), Settle("failed")]
    lines = (Line("began"), Line("publish", "files"), Line("settled"))
    driver.turns(note("beside"), applied(more, lines, status="failed", files={"chunk": chunk, "d": "/", "e": b""}))
    driver.close()


def not_waiting(driver: Driver) -> None:
    """Append notes that do not wait for the disk, between some that do; ask again for one of them and wait; leave two at the end."""
    driver.own()
    for number in range(3):
        driver.turns(note("early", str(number), f"request {number}", durable=False))
    driver.turns(repeated("early", "1", "request 1"))
    driver.turns(note("more", durable=False), note("beside", long(1), durable=False))
    driver.turns(note("soon", durable=False), note("waits"))
    driver.checkpoint()
    driver.turns(note("again", durable=False))
    driver.checkpoint()
    for number in range(3):
        driver.turns(note("late", long(number), durable=False))
    driver.close()
    driver.own()
    driver.turns(note("lost", durable=False))
    driver.crash()


def stepping(driver: Driver) -> None:
    """Do steps without intents: one that fails twice, a long one, two beside a note in one batch; ask for them again, later too."""
    driver.own()
    driver.turns(ask_for("failing"))
    for attempt in (1, 2):
        driver.turns(end("failing", attempt))
    driver.turns(end("failing", 3, "3"))
    driver.turns(ask_for("failing"))
    driver.turns(end("long", 1, long(1)))
    driver.turns(end("one", 1, "1"), note("beside"), ask_for("long"), end("other", 1, "2"))
    driver.turns(end("hasty", 1, "4", durable=False))
    driver.close()
    driver.own()
    driver.turns(ask_for("failing"), ask_for("long"))
    driver.close()


def intending(driver: Driver) -> None:
    """Do steps with intents: one that fails and is done then, one whose owner dies in it and that is repeated, one that is found done."""
    driver.own()
    driver.turns(intend("charge", "park"))
    driver.turns(end("charge", 1))
    driver.turns(intend("charge", "probe", 2), note("beside"))
    driver.turns(end("charge", 2, "7"))
    for key in ("lost", "found", "left"):
        driver.turns(intend(key, "probe"))
    driver.crash()
    driver.own()
    driver.turns(ask_for("lost", "repeat"), ask_for("found", "probe"))
    driver.turns(end("lost", 2, long(2)))
    driver.turns(end("found", 1, "null"), end("charged", 1, "8"))
    driver.close()


def deleting(driver: Driver) -> None:
    """Delete the run."""
    driver.delete()


class Scenario(NamedTuple):
    """A story and what it begins with: no run, one that was closed, or what an owner left that died (its -wal, a running execution)."""

    beginning: Literal["nothing", "closed", "dead"]
    story: Callable[[Driver], None]


SCENARIOS = {
    "create": Scenario("nothing", creating),
    "append": Scenario("closed", appending),
    "request": Scenario("closed", requesting),
    "spill": Scenario("closed", spilling),
    "transact": Scenario("closed", transacting),
    "execute": Scenario("closed", executing),
    "take over": Scenario("dead", taking_over),
    "checkpoint": Scenario("dead", checkpointing),
    "publish": Scenario("closed", publishing_files),
    "staged publish": Scenario("closed", publishing_in_blocks),
    "publish elsewhere": Scenario("closed", publishing_elsewhere),
    "apply": Scenario("closed", applying),
    "not durable": Scenario("dead", not_waiting),
    "once": Scenario("closed", stepping),
    "once with intent": Scenario("closed", intending),
    "delete": Scenario("closed", deleting),
    "delete what a dead owner left": Scenario("dead", deleting),
}


def path_in(base: Path) -> RunPath:
    """Return where a scenario's run is: in a folder that its creation makes."""
    return resolve(base / "runs" / "deep", "a")


class Beginning(NamedTuple):
    """A folder to begin with, and what is known of the run in it."""

    folder: CrashImage
    known: State


@cache
def beginning(kind: Literal["closed", "dead"]) -> Beginning:
    """Return what an owner leaves that closes, or dies with its machine running on: then all that it wrote is there."""
    with TemporaryDirectory() as folder, Recorder(folder) as recorder:
        driver = Driver(path_in(Path(folder)), recorder)
        driver.create()
        driver.own()
        driver.append("before", "0", "request before")
        if kind == "dead":
            driver.turns(begin())
            driver.append("late")
            known, steps = driver.state, len(recorder.record.steps)
            driver.close()
            return Beginning(crash_image(recorder.record, 0, (steps - 1) * len(KINDS)), known)
        driver.close()
        return Beginning(crash_image(recorder.record, 0, (len(recorder.record.steps) - 1) * len(KINDS)), driver.state)


def prepare(name: str, base: Path) -> State | None:
    """Put what the scenario begins with into *base*; return what is known of it."""
    kind = SCENARIOS[name].beginning
    if kind == "nothing":
        base.mkdir(parents=True, exist_ok=True)
        return None
    folder, known = beginning(kind)
    folder.restore(base)
    return known


def play(name: str, driver: Driver, known: State | None) -> None:
    """Let the story happen, as far as it goes; whatever ends it, nothing stays open."""
    if known is not None:
        driver.say("must", known)
    try:
        SCENARIOS[name].story(driver)
    finally:
        driver.crash()


def record(name: str, base: Path) -> Record:
    """Return the record of a scenario, whose marks are the facts of its driver's book."""
    known = prepare(name, base)
    with Recorder(base) as recorder:
        play(name, Driver(path_in(base), recorder, recorder.mark, life=1), known)
        return recorder.record


def record_recovery(image: CrashImage, base: Path) -> Record:
    """Return the record of an owner that takes over what a power loss has left, and appends."""
    book = Book(image.marks)  # type: ignore[arg-type]
    path = path_in(image.restore(base))
    with Recorder(base) as recorder:
        driver = Driver(path, recorder, recorder.mark, life=2)
        driver.say("must", judge(path, book))
        driver.own()
        driver.append("recovered")
        driver.crash()
        return recorder.record
