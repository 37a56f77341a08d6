"""Two handles append in turn, one of them opened before the other wrote: no byte is lost, and the order is that of the writes."""

from __future__ import annotations

from pathlib import Path

import freehold


def test_appends_in_turn_lose_nothing(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        run.publish("start", lambda files: files.write_text("log", "0\n"))
        with run.publish("append") as files:
            one = files.open("log", "ab", buffering=0)
            other = files.open("log", "a")
            for number in range(1, 6):
                one.write(b"one %d\n" % number)
                other.write(f"other {number}\n")
                other.flush()
            one.close()
            other.close()

        lines = run.files.read_text("log").splitlines()
        assert lines == ["0"] + [f"{who} {number}" for number in range(1, 6) for who in ("one", "other")]


def test_an_append_over_publishes_goes_to_the_end_as_it_is_then(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        for number in range(5):
            with run.publish("append") as files, files.open("log", "a") as log:
                log.seek(0)  # an append ignores where it stands
                log.write(f"{number}\n")

        assert run.files.read_text("log").split() == ["0", "1", "2", "3", "4"]
