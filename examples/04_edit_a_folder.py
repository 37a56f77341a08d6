"""Edit a real folder in a run from eight threads, kill the process half-way, and go on: no publish is lost, none is half there.

A child process imports the folder, and edits, renames and deletes in several hundred publishes. The parent kills it with
SIGKILL, reopens the run, looks for every publish that the child had been promised, and starts the child again. It makes
the same changes in a dict (twin.py), publish by publish in the order of the journal, and holds the run's roots against
it: byte for byte, mode for mode, link for link. It ends with one table, and with exit code 0 only if everything held.

    python examples/04_edit_a_folder.py [FOLDER] [--root DIR] [--keep]

What a publish changes is decided in edits.py. The twin, and so the whole folder, is kept in memory.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, time
from typing import Any

from demonstration import checked, command_line, raw_commits_per_second, root_folder
from edits import TREE, Places, edit, places_in
from files_below import STANDARD_LIBRARY, path_text
from replay import Replay
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text
from twin import Entry

import freehold
from freehold import Conflict, Event, Files, ReadFiles, Run

RUN = "edits"
THREADS = 8
PUBLISHES = 400
SHOWN_MAX = 10
Advance = Callable[[], None]


# The child: it publishes, and says what was acknowledged


def publish_all(folder: Path, root: Path, publishes: int) -> None:
    """Import the folder and make all the publishes, each exactly once, however often this is started."""
    # File names are facts, not credentials, whatever they look like.
    with freehold.open(root, on_secret_shape="allow") as host, ThreadPoolExecutor(THREADS) as pool:  # noqa: S106 - a word
        with host.ensure(RUN, props={"folder": path_text(str(folder))}) as run:
            places = places_of(run.snapshot(import_once(run, folder, root)))
        tell(ready=True)

        def take_turns(numbers: Iterable[int]) -> None:
            with host.open(RUN) as run:
                for number in numbers:
                    event, retries = publish(run, number, places)
                    tell(number=number, seq=event.seq, hash=event.hash, root=event.root, retries=retries)

        # list() asks for the results, and so raises what a thread has raised.
        list(pool.map(take_turns, [range(start, publishes, THREADS) for start in range(THREADS)]))


def import_once(run: Run, folder: Path, root: Path) -> Event:
    """Import the folder, unless an earlier life has, and return the event."""
    for event in run.history(name="import"):
        return event
    ignore = ["/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", path) for path in apart(folder, root)]
    began = perf_counter()
    effect = run.import_tree(folder, TREE, ignore=ignore)
    seconds = perf_counter() - began
    commits = run.info.txn
    skipped = [("/".join(each.parts), str(each.reason)) for each in effect.skipped if not each.held]
    tell(seq=effect.seq, hash=effect.hash, root=effect.root, seconds=seconds, commits=commits, skipped=skipped)
    return effect


def publish(run: Run, number: int, places: Places) -> tuple[Event, int]:
    """Make one publish, and return its event and how often it had to be entered again."""

    def work(files: Files) -> None:
        edit(files, number, places)

    # The id says which request this is. If an earlier life has made it, its event comes back and nothing is changed.
    name, request_id = f"edit {number}", f"edit/{number}"
    if (number + number // THREADS) % 2:
        # In the owner's thread: nobody comes between, and everybody waits.
        return run.publish(name, work, request_id=request_id), 0
    retries = 0
    while True:
        try:
            # In this thread, beside everybody else.
            with run.publish(name, request_id=request_id) as files:
                work(files)
            return files.effect, retries
        except Conflict:
            retries += 1  # another publish has changed what this one had looked at; look again


def places_of(imported: ReadFiles) -> Places:
    """Return where something may be edited."""
    walked = list(imported.walk(TREE))
    below = [f"{above}/{name}" for above, names, others in walked for name in names + others]
    return places_in(below, [above for above, _, _ in walked])


def apart(folder: Path, root: Path) -> list[str]:
    """Return what is in the folder and is not shown: the run itself, and what was installed into the standard library."""
    inside = [str(root.relative_to(folder))] if root.is_relative_to(folder) else []
    return [*inside, *(("site-packages", "dist-packages") if folder == STANDARD_LIBRARY else ())]


def tell(**facts: Any) -> None:
    """Write one line to the parent. That of a publish is shorter than what a pipe takes in one piece, so it arrives whole."""
    os.write(sys.stdout.fileno(), json.dumps(facts).encode() + b"\n")


# The parent: it kills, reopens and compares


@dataclass
class Life:
    """What the parent has heard of one child: its import, each acknowledged publish by seq, and how it went."""

    imported: dict[str, Any] = field(default_factory=dict)
    acknowledged: dict[int, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    exit_code: int = 0


@dataclass
class Reopened:
    """What was found in the run after the kill."""

    seconds: float
    seqs: set[int]
    commits: int
    lost: list[int]


@dataclass
class Ended:
    """What the finished run is."""

    lost: list[int]
    changes: int
    diff_seconds: float
    checkout_seconds: float
    copy_seconds: float
    run_bytes: int


def live(command: list[str], advance: Advance, kill_after: int | None = None) -> Life:
    """Run a child to its end, or until it has acknowledged *kill_after* publishes; return what it told."""
    # In a session of its own, so that Ctrl-C reaches the parent alone, which then ends the child.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:  # noqa: S603 - this file
        assert child.stdout is not None
        life, began = Life(), perf_counter()
        try:
            # What the child wrote before it died still stands in the pipe, and is a promise like any other.
            for line in child.stdout:
                told = json.loads(line)
                if "number" in told:
                    life.acknowledged[told["seq"]] = told
                    advance()
                elif "ready" in told:
                    began = perf_counter()
                else:
                    life.imported = told
                life.seconds = perf_counter() - began
                if kill_after is not None and len(life.acknowledged) >= kill_after:
                    child.kill()
                    kill_after = None
        except BaseException:
            child.kill()
            raise
    life.exit_code = child.returncode
    return life


def reopen(folder: Path, root: Path, life: Life, since: float, advance: Advance) -> tuple[Reopened, Replay]:
    """Own the run after the kill, check all of it, and make again what is in its journal."""
    began = perf_counter()
    with freehold.open(root) as host, host.open(RUN) as run:
        seconds = perf_counter() - began
        commits = run.info.txn - life.imported["commits"] - 1  # but for the take-over just now
        run.verify()
        replay = Replay(run, life.imported["seq"])
        replay.compare_with_source(folder, {path for path, _ in life.imported["skipped"]}.union(apart(folder, root)), since)
        replay.follow(run, {max(life.acknowledged, default=0)}, advance)
    return Reopened(seconds, set(replay.events), commits, replay.lost(life.acknowledged)), replay


def end(root: Path, replay: Replay, promised: dict[int, dict[str, Any]], first: int, advance: Advance) -> Ended:
    """Make again the rest of the journal, compare first and last root, and hold the last one, checked out, against the twin."""
    with freehold.open(root) as host, host.open(RUN) as run:
        run.verify()
        replay.follow(run, (), advance)
    # A view owns nothing.
    view, last = freehold.view(root / f"{RUN}.sqlite"), root / "last"
    began = perf_counter()
    changes = view.diff(first)
    diff_seconds, began = perf_counter() - began, perf_counter()
    view.checkout(last)
    checkout_seconds, began = perf_counter() - began, perf_counter()
    subprocess.run(["cp", "-r", last, root / "copy"], check=True)  # noqa: S603, S607 - it is measured as it is installed
    copy_seconds = perf_counter() - began
    replay.compare_changes(changes)
    replay.compare(last)
    return Ended(replay.lost(promised), len(changes), diff_seconds, checkout_seconds, copy_seconds, view.path.stat().st_size)


# The demonstration


def demonstrate(folder: Path, root: Path, publishes: int, kill_after: int | None) -> list[str]:
    """Tell the whole story, print its table, and return what did not hold."""
    since = time() - 0.05  # the kernel stamps files with a clock that lags by a tick
    raw = raw_commits_per_second(root)
    command = [sys.executable, "-B", __file__, "--child", "--root", str(root), "--publishes", str(publishes), "--", str(folder)]
    with Progress(console=Console(stderr=True)) as progress:

        def bar(title: str, total: int = publishes) -> Advance:
            task = progress.add_task(title, total=total)
            return lambda: progress.advance(task)

        first = live(command, bar("importing, then editing, until the kill"), publishes // 2 if kill_after is None else kill_after)
        if first.exit_code not in (0, -signal.SIGKILL) or not first.imported:
            return [f"the first child ended by itself, with exit code {first.exit_code}"]
        found, replay = reopen(folder, root, first, since, bar("making again what was found", len(first.acknowledged)))
        second = live(command, bar("editing, second life"))
        if second.exit_code != 0:
            return [f"the second child ended by itself, with exit code {second.exit_code}"]
        rest = bar("making the rest again", publishes - len(found.seqs))
        ended = end(root, replay, first.acknowledged | second.acknowledged, first.imported["seq"], rest)
    raw = (raw + raw_commits_per_second(root)) / 2
    Console().print(result_table(folder, first, found, second, ended, replay, raw))
    if first.exit_code == 0:
        print("The first child had finished before the kill came; more publishes show one.", file=sys.stderr)
    say_some("left out", [f"{path!r} ({why})" for path, why in first.imported["skipped"]])
    say_some("changed meanwhile", [repr(path) for path in replay.changed])
    return [
        *(f"event {seq} was acknowledged and is lost" for seq in sorted({*found.lost, *ended.lost})),
        *(f"event {seq} is half there" for seq in replay.halves),
        *([] if replay.numbers == set(range(publishes)) else ["not every publish is in the journal"]),
        *replay.wrong,
    ]


def say_some(what: str, several: list[str]) -> None:
    """Say the first ones, and how many more there are."""
    for each in several[:SHOWN_MAX]:
        print(f"{what}: {each}", file=sys.stderr)
    if len(several) > SHOWN_MAX:
        print(f"{what}: {len(several) - SHOWN_MAX:,} more", file=sys.stderr)


def result_table(folder: Path, first: Life, found: Reopened, second: Life, ended: Ended, replay: Replay, raw: float) -> Table:
    """Return the one table."""
    rate = len(first.acknowledged) / first.seconds if first.seconds else 0.0
    files, size = measured(replay.first)
    last_files, last_size = measured(replay.twin.entries)
    conflicts = sum(told["retries"] for life in (first, second) for told in life.acknowledged.values())
    rows = {
        "files imported": f"{files:,}",
        "bytes imported": f"{size:,}",
        "left out: cannot be held, or not be read": f"{len(first.imported['skipped']):,}",
        "changed while this ran": f"{len(replay.changed):,}",
        "time to import": f"{first.imported['seconds']:,.2f} s",
        "publishes, each exactly once": f"{len(replay.numbers):,}",
        "conflicts, each entered again": f"{conflicts:,}",
        "acknowledged before the kill": f"{len(first.acknowledged):,}",
        "found after it": f"{len(found.seqs):,}",
        "acknowledged and lost": f"{len({*found.lost, *ended.lost}):,}",
        "half there": f"{len(replay.halves):,}",
        "sent again, answered from the journal": f"{sum(seq in found.seqs for seq in second.acknowledged):,}",
        "time to reopen": f"{found.seconds * 1000:,.1f} ms",
        "publishes per commit": f"{len(found.seqs) / max(1, found.commits):,.1f}",
        "publishes per second": f"{rate:,.0f}",
        "raw commits per second, same disk": f"{raw:,.0f}",
        "differences between first and last root": f"{ended.changes:,}",
        "time to find them": f"{ended.diff_seconds * 1000:,.1f} ms",
        "files in the last root": f"{last_files:,}",
        "bytes in the last root": f"{last_size:,}",
        "bytes of the run file, with all roots": f"{ended.run_bytes:,}",
        "time to check the last root out": f"{ended.checkout_seconds:,.2f} s",
        "time of cp -r for the same, without a sync": f"{ended.copy_seconds:,.2f} s",
        "not as in the twin": f"{len(replay.wrong):,}",
    }
    table = Table("", "", title=Text(path_text(str(folder))), show_header=False)
    table.columns[1].justify = "right"
    for what, value in rows.items():
        table.add_row(what, value)
    return table


def measured(entries: dict[str, Entry]) -> tuple[int, int]:
    """Return how many files there are, and how many bytes in them."""
    sizes = [len(entry.content) for entry in entries.values() if entry.kind == "file"]
    return len(sizes), sum(sizes)


def main() -> int:
    """Be the parent, or the child that it started."""
    parser = command_line((__doc__ or "").partition("\n")[0], "publishes")
    parser.add_argument("--publishes", type=int, default=PUBLISHES, metavar="N", help=f"how many to make; default: {PUBLISHES}")
    given = checked(parser)
    if given.publishes < 1:
        parser.error("--publishes takes 1 or more; nothing was made")
    if given.child:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end when nobody listens any more
        publish_all(given.folder, given.root, given.publishes)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up, then go
    try:
        with root_folder(given.root, RUN, keep=given.keep) as root:
            problems = demonstrate(given.folder, root, given.publishes, given.kill_after)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except (freehold.Error, OSError) as error:
        problems = [f"{type(error).__name__}: {error}"]
    say_some("problem", problems)
    print("Something did not hold." if problems else "Everything held.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
