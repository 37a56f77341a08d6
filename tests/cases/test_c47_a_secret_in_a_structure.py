"""C47: a declared secret is in no table and no output, wherever in a result, an exception or an argument it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import freehold
from freehold.cli import main

SECRET = "S3CR-canary"
RESULT: dict[str, Any] = {
    "headers": [{"name": "Authorization", "value": f"Bearer {SECRET}"}],
    "env": {"DB_PASSWORD": SECRET},
    "nested": {"a": [{"token": SECRET}]},
}
SHAPE = {
    "headers": [{"name": "Authorization", "value": "Bearer ***"}],
    "env": {"DB_PASSWORD": "***"},
    "nested": {"a": [{"token": "***"}]},
}


class ApiError(Exception):
    """One that carries the whole answer with it."""

    def __init__(self) -> None:
        super().__init__(f"refused with {RESULT}")
        self.response = RESULT
        self.add_note(f"token {SECRET}")


def raise_it(*_: object, **__: object) -> None:
    raise ApiError


def test_a_search_for_the_secret_finds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with freehold.open(tmp_path, secrets={"password": SECRET}) as host, host.create("a") as run:
        with pytest.raises(freehold.Refused) as caught:
            run.once("result", lambda: RESULT)
        assert (caught.value.code, caught.value.details["path"]) == ("secret_refused", "$.headers[0].value")
        with pytest.raises(ApiError) as raised:
            run.once("exception", raise_it, SECRET, env=RESULT)
        assert raised.value.response is RESULT  # whoever catches it has the real one
        with pytest.raises(freehold.Refused):
            run.once(f"key {SECRET}", lambda: 1)
        told = {event.name: event.data for event in run.history(after=1)}
    assert told["exception"]["failure"]["details"] == {"response": SHAPE}
    assert told["exception"]["failure"]["message"] == f"refused with {SHAPE}"
    assert told["exception"]["failure"]["notes"] == ["token ***"]
    assert told["exception"]["input"] is None
    stored = [file for file in tmp_path.iterdir() if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert stored == []
    for words in (["history", "a"], ["--json", "history", "a"], ["--json", "show", "a"]):
        assert main(["--root", str(tmp_path), *words]) == 0
        out, err = capsys.readouterr()
        assert SECRET not in out + err
