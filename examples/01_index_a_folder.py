"""Record every file of a folder in one run, kill the process half-way, and go on: nothing that was acknowledged is lost.

A child process does the work: eight threads, each with its own lease, append path, size and sha256 of every file. The
parent kills it with SIGKILL, reopens the run, looks for every record that the child had been promised, and starts the
child again. It ends with one table, and with exit code 0 only if everything held.

    python examples/01_index_a_folder.py [FOLDER] [--root DIR] [--keep]

Every file is recorded; links are not followed, and they and what cannot be read are recorded as skipped (files_below.py).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import perf_counter, time

import apsw
from files_below import STANDARD_LIBRARY, Record, look_at, path_of, path_text, paths_below
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import freehold
from freehold import Event, Refused, Run

RUN = "index"
THREADS = 8
READY = "ready\n"
RAW_SECONDS = 0.5


# The child: it records, and says what was acknowledged


def record_all(folder: Path, root: Path) -> None:
    """Record every path below *folder*, each exactly once, however often this is started."""
    paths = list(paths_below(folder, root))
    # File names and hashes are facts, not credentials, whatever they look like.
    with freehold.open(root, on_secret_shape="allow") as host, ThreadPoolExecutor(THREADS) as pool:  # noqa: S106 - a word
        host.ensure(RUN, props={"folder": path_text(str(folder))}).close()
        tell(READY)

        def record_part(part: list[str]) -> None:
            with host.open(RUN) as run:
                for path in part:
                    tell(record(run, folder, path))

        # list() asks for the results, and so raises what a thread has raised.
        list(pool.map(record_part, [paths[start::THREADS] for start in range(THREADS)]))


def record(run: Run, folder: Path, path: str) -> str:
    """Record one path and return the line that acknowledges it."""
    name, data = look_at(folder, path)
    try:
        # The id says which request this is. If an earlier life has made it, its event comes back and nothing is added.
        # It is a hash because a path may be longer than an id.
        event = run.append(name, data, request_id=sha256(os.fsencode(path)).hexdigest())
    except Refused as refused:
        if refused.code != "request_conflict":
            raise
        # An earlier life has recorded this path, and the file has changed since. Once is enough.
        return "known\n"
    return f"{event.seq} {event.hash}\n"


def tell(line: str) -> None:
    """Write one line to the parent, whole and at once: a line is shorter than what a pipe takes in one piece."""
    os.write(sys.stdout.fileno(), line.encode())


# The parent: it kills, reopens and compares


@dataclass
class Life:
    """What the parent has heard of one child: the hash of each acknowledged event by seq, and how it went."""

    acknowledged: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    exit_code: int = 0


@dataclass
class Reopened:
    """What was found in the run after the kill."""

    seconds: float
    seqs: set[int]
    commits: int
    lost: list[int]
    halves: list[int]


@dataclass
class Compared:
    """What the finished run and the folder say of each other."""

    records: int
    skipped: int
    file_bytes: int
    lost: list[int]
    changed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def live(folder: Path, root: Path, advance: Callable[[], None], kill_after: int | None = None) -> Life:
    """Run a child to its end, or until it has acknowledged *kill_after* records; return what it told."""
    command = [sys.executable, "-B", __file__, "--child", "--root", str(root), "--", str(folder)]
    # In a session of its own, so that Ctrl-C reaches the parent alone, which then ends the child.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:  # noqa: S603 - this file
        assert child.stdout is not None
        life, began = Life(), perf_counter()
        try:
            # What the child wrote before it died still stands in the pipe, and is a promise like any other.
            for line in child.stdout:
                if line == READY:
                    began = perf_counter()
                else:
                    seq, _, event_hash = line.strip().partition(" ")
                    if event_hash:
                        life.acknowledged[int(seq)] = event_hash
                    advance()
                life.seconds = perf_counter() - began
                if kill_after is not None and len(life.acknowledged) >= kill_after:
                    child.kill()
                    kill_after = None
        except BaseException:
            child.kill()
            raise
    life.exit_code = child.returncode
    return life


def reopen(root: Path, promised: dict[int, str]) -> Reopened:
    """Own the run after the kill, check its whole chain, and look for every promised event."""
    began = perf_counter()
    with freehold.open(root) as host, host.open(RUN) as run:
        seconds = perf_counter() - began
        run.verify()
        events = list(run.history(after=1))
        halves = [event.seq for event in events if not is_whole(event)]
        commits = run.info.txn - 1  # but for the take-over just now
        return Reopened(seconds, {event.seq for event in events}, commits, missing(events, promised), halves)


def missing(events: list[Event], promised: dict[int, str]) -> list[int]:
    """Return the seqs that were promised and are not in the journal exactly as they were."""
    # The hash covers the whole event and all before it: where it is equal, path, size and sha256 are too.
    hashes = {event.seq: event.hash for event in events}
    return [seq for seq, event_hash in promised.items() if hashes.get(seq) != event_hash]


def is_whole(event: Event) -> bool:
    """Return whether an event says all that one of ours says."""
    return set(event.data) == ({"path", "size", "sha256"} if event.name == "file" else {"path", "why"})


def compare(folder: Path, root: Path, promised: dict[int, str], since: float, advance: Callable[[], None]) -> Compared:
    """Check the finished run once more, and hold it against the folder as it is now. A view owns nothing."""
    view = freehold.view(root / f"{RUN}.sqlite")
    view.verify()
    events = list(view.history(after=1))
    skipped = sum(event.name == "skipped" for event in events)
    result = Compared(len(events), skipped, view.path.stat().st_size, missing(events, promised))
    recorded: dict[str, Record] = {}
    for event in events:
        text = event.data["path"]
        if text in recorded:
            result.wrong.append(f"recorded twice: {text!r}")
        recorded[text] = (str(event.name), event.data)

    for path in paths_below(folder, root):
        if recorded.pop(path_text(path), None) != look_at(folder, path):
            differs(result, folder, path, since)
        advance()
    for text in recorded:
        differs(result, folder, path_of(text), since)
    return result


def differs(result: Compared, folder: Path, path: str, since: float) -> None:
    """Put a path that is not as it was recorded where it belongs: changed meanwhile, or wrong."""
    file = folder / path
    while not os.path.lexists(file):
        file = file.parent  # what came or went has changed its folder
    if file.lstat().st_ctime >= since:
        result.changed.append(path_text(path))
    else:
        result.wrong.append(f"not as it was recorded: {path_text(path)!r}")


def raw_commits_per_second(root: Path) -> float:
    """Return how fast this disk takes bare commits: one INSERT each, WAL, FULL, and nothing of Freehold."""
    file = root / "raw.db"
    db = apsw.Connection(str(file))
    try:
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", 2)
        db.execute("CREATE TABLE record (seq INTEGER PRIMARY KEY, text TEXT) STRICT")
        commits, began = 0, perf_counter()
        while (seconds := perf_counter() - began) < RAW_SECONDS:
            db.execute("BEGIN IMMEDIATE; INSERT INTO record (text) VALUES (?); COMMIT", ("x" * 200,))
            commits += 1
        return commits / seconds
    finally:
        db.close()
        file.unlink()


# The demonstration


def demonstrate(folder: Path, root: Path, kill_after: int | None) -> list[str]:
    """Tell the whole story, print its table, and return what did not hold."""
    since = time() - 0.05  # the kernel stamps files with a clock that lags by a tick
    paths = sum(1 for _ in paths_below(folder, root))
    raw = raw_commits_per_second(root)
    with Progress(console=Console(stderr=True)) as progress:

        def bar(title: str) -> Callable[[], None]:
            task = progress.add_task(title, total=paths)
            return lambda: progress.advance(task)

        first = live(folder, root, bar("recording, until the kill"), paths // 2 if kill_after is None else kill_after)
        if first.exit_code not in (0, -signal.SIGKILL):
            return [f"the first child ended by itself, with exit code {first.exit_code}"]
        found = reopen(root, first.acknowledged)
        second = live(folder, root, bar("recording, second life"))
        if second.exit_code != 0:
            return [f"the second child ended by itself, with exit code {second.exit_code}"]
        compared = compare(folder, root, first.acknowledged | second.acknowledged, since, bar("comparing with the folder"))
    raw = (raw + raw_commits_per_second(root)) / 2
    Console().print(result_table(folder, first, found, second, compared, raw))
    if first.exit_code == 0:
        print("The first child had finished before the kill came; a folder with more files shows one.", file=sys.stderr)
    for path in compared.changed:
        print(f"changed meanwhile: {path!r}", file=sys.stderr)
    return [
        *(f"event {seq} was acknowledged and is lost" for seq in sorted({*found.lost, *compared.lost})),
        *(f"event {seq} is half there" for seq in found.halves),
        *compared.wrong,
    ]


def result_table(folder: Path, first: Life, found: Reopened, second: Life, compared: Compared, raw: float) -> Table:
    """Return the one table."""
    rate = len(first.acknowledged) / first.seconds if first.seconds else 0.0
    table = Table("", "", title=Text(path_text(str(folder))), show_header=False)
    table.columns[1].justify = "right"
    rows = {
        "files": f"{compared.records - compared.skipped:,}",
        "links and what cannot be read, recorded as skipped": f"{compared.skipped:,}",
        "records, each path exactly once": f"{compared.records:,}",
        "acknowledged before the kill": f"{len(first.acknowledged):,}",
        "found after it": f"{len(found.seqs):,}",
        "acknowledged and lost": f"{len({*found.lost, *compared.lost}):,}",
        "half there": f"{len(found.halves):,}",
        "sent again, answered from the journal": f"{sum(seq in found.seqs for seq in second.acknowledged):,}",
        "changed while this ran": f"{len(compared.changed):,}",
        "time to reopen": f"{found.seconds * 1000:,.1f} ms",
        "commits until the kill": f"{found.commits:,}",
        "records per commit": f"{len(found.seqs) / found.commits:,.1f}",
        "records per second": f"{rate:,.0f}",
        "raw commits per second, same disk": f"{raw:,.0f}",
        "records per raw commit": f"{rate / raw:,.2f}",
        "bytes of the run file per record": f"{compared.file_bytes / max(1, compared.records):,.0f}",
    }
    for what, value in rows.items():
        table.add_row(what, value)
    return table


@contextmanager
def root_folder(wanted: Path | None, *, keep: bool) -> Iterator[Path]:
    """Make the folder that the run is kept in, and take it away again: what was not there before, and nothing else."""
    made = wanted is None or not wanted.exists()
    if wanted is None:
        # Rather not /tmp, which is memory on many machines: a commit costs nothing there, and proves nothing.
        place = os.environ.get("TMPDIR") or ("/var/tmp" if os.access("/var/tmp", os.W_OK) else None)  # noqa: S108 - mkdtemp
        root = Path(tempfile.mkdtemp(prefix="freehold-demo-", dir=place))
    else:
        root = wanted
        root.mkdir(exist_ok=True)
    try:
        yield root.resolve()
    finally:
        if keep:
            print(f"The run is kept: {root / RUN}.sqlite", file=sys.stderr)
        else:
            for file in root.iterdir():
                file.unlink()
            if made:
                root.rmdir()


def arguments() -> argparse.Namespace:
    """Return what the command line says; a wrong one ends here, before anything is made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=STANDARD_LIBRARY, metavar="FOLDER", help="default: the standard library")
    parser.add_argument("--root", type=Path, metavar="DIR", help="keep the run there, in a new or empty folder; default: a temporary one")
    parser.add_argument("--keep", action="store_true", help="leave the run there at the end")
    parser.add_argument("--kill-after", type=int, metavar="N", help="kill after N acknowledged records; default: half of them")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    try:
        wrong = None if given.child else what_is_wrong(given)
        given.folder = given.folder.resolve()
    except OSError as error:
        wrong = str(error)
    if wrong is not None:
        parser.error(f"{wrong}; nothing was made")
    return given


def what_is_wrong(given: argparse.Namespace) -> str | None:
    """Return why the demonstration cannot begin, or None."""
    if not given.folder.is_dir():
        return f"{str(given.folder)!r} is not a folder"
    if given.kill_after is not None and given.kill_after < 0:
        return "--kill-after takes 0 or more"
    if given.root is None:
        return None
    if given.root.resolve() == given.folder.resolve():
        return "the run cannot be kept in the very folder that is recorded"
    if not given.root.parent.is_dir():
        return f"{str(given.root.parent)!r}, where the run's folder would be made, is not a folder"
    if given.root.exists() and not (given.root.is_dir() and not any(given.root.iterdir())):
        return f"{str(given.root)!r} is not a new or empty folder"
    return None


def main() -> int:
    """Be the parent, or the child that it started."""
    given = arguments()
    if given.child:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end when nobody listens any more
        record_all(given.folder, given.root)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up, then go
    try:
        with root_folder(given.root, keep=given.keep) as root:
            problems = demonstrate(given.folder, root, given.kill_after)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except (freehold.Error, OSError) as error:
        problems = [f"{type(error).__name__}: {error}"]
    for problem in problems:
        print(problem, file=sys.stderr)
    print("Something did not hold." if problems else "Everything held.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
