"""C1: several processes that start at once on a fresh folder failed, because the switch to WAL is refused as busy and not waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosting import host_file, users

ROUNDS = 20


@pytest.mark.timeout(120)
def test_eight_processes_that_open_a_new_host_file_at_once_all_succeed(tmp_path: Path) -> None:
    with users(8) as them:
        for _ in range(ROUNDS):
            assert them.all("open", str(tmp_path)) == [["ok", "wal"]] * 8
            assert them.all("hosts") == [["ok", 8]] * 8
            assert them.all("close") == [["ok", None]] * 8
            # Of those who close at one moment none may be the last, who takes what SQLite has beside it away: the next who closes does.
            assert {path.name for path in tmp_path.iterdir()} - {f"{host_file(tmp_path).name}{end}" for end in ("-wal", "-shm")} == {
                host_file(tmp_path).name
            }
            host_file(tmp_path).unlink()
