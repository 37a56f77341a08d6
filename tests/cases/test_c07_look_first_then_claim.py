"""C7: a transaction that read and then wrote was refused at once when somebody else had committed in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosting import users

from freehold.storage.hostfile import HostFile


@pytest.mark.parametrize("runs", [50, pytest.param(500, marks=[pytest.mark.prove, pytest.mark.timeout(600)])])
def test_two_who_look_for_the_driver_and_claim_have_one_winner_a_run(tmp_path: Path, runs: int) -> None:
    with users(2) as them:
        them.all("open", str(tmp_path))
        answers = them.all("claim", 0, runs)
        assert [code for code, _ in answers] == ["ok", "ok"]
        (won, lost), (others_won, others_lost) = (answer for _, answer in answers)
        assert won + lost == others_won + others_lost == runs
        assert (won + others_won, won, others_won) == (runs, others_lost, lost)
        file = HostFile(str(tmp_path))
        assert file.read(lambda db: db.execute("SELECT count(*) FROM driver").get) == runs
        file.close()
