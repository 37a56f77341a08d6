"""`python -m benchmarks`: Freehold beside its raw references, measured in the same run. A row that falls short is marked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.budget import Result
from benchmarks.machine import Machine
from benchmarks.place import NoDisk, on_disk
from benchmarks.report import document, show
from benchmarks.rounds import measure
from benchmarks.rows import ROWS
from rich.console import Console

ROUNDS = 7
ROUNDS_QUICK = 1


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print the table and write the document. Returns 0 also when a row falls short: a machine may be busy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer messages and one round: a look, no measurement")
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS], metavar="NAME", help="this row; may be repeated")
    parser.add_argument("--rounds", type=_rounds, metavar="N", help=f"rounds of each row ({ROUNDS}, quick {ROUNDS_QUICK})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON too")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="measure on the disk of this folder")
    options = parser.parse_args(words)
    rounds = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
    rows = [row for row in ROWS if options.only is None or row.name in options.only]
    if options.quick:
        if options.only is not None and (long := [row.name for row in rows if row.quick is None]):
            parser.error(f"there is no quick look at {', '.join(long)}")
        rows = [row for row in rows if row.quick is not None]
    errors = Console(stderr=True)
    results: list[Result] = []
    try:
        with on_disk(options.folder) as (folder, filesystem):
            machine = Machine(filesystem)
            with errors.status("measuring") as status:
                for row in rows:
                    status.update(f"measuring {row.name}")
                    results += measure(
                        row, folder, rounds=rounds, amount=row.quick if options.quick and row.quick is not None else row.amount
                    )
            machine.finish()
    except NoDisk as error:
        errors.print(str(error), highlight=False)
        return 2
    show(results, machine, Console())
    if options.json is not None:
        options.json.write_text(json.dumps(document(results, machine), indent=2) + "\n", encoding="utf-8")
    return 0


def _rounds(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("rounds is 1 or more")
    return number


if __name__ == "__main__":
    raise SystemExit(main())
