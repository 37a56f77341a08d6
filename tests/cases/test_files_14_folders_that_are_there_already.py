"""Making a folder twice, filling one that is there, opening one as a file, moving an empty one: each as a file system has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from published import contents

import freehold


def test_each_does_what_a_file_system_does(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("r") as run:
        with run.publish("folders") as files:
            files.mkdir("a")
            with pytest.raises(FileExistsError):
                files.mkdir("a")
            files.mkdir("a", exist_ok=True)
            files.mkdir("a/b/c", parents=True)
            files.mkdir("a/b/c", parents=True, exist_ok=True)
            for mode in ("r", "w", "a", "r+"):
                with pytest.raises(IsADirectoryError):
                    files.open("a", mode)
            with pytest.raises(FileExistsError):
                files.open("a", "x")
            with pytest.raises(IsADirectoryError):
                files.write_bytes("a", b"")
            files.write_text("f", "")
            with pytest.raises(FileExistsError):
                files.mkdir("f", exist_ok=True)
            with pytest.raises(NotADirectoryError):
                files.mkdir("f/x", parents=True, exist_ok=True)
            files.rename("a/b/c", "moved")

        assert contents(run.files) == {"a": "/", "a/b": "/", "f": b"", "moved": "/"}
        assert not list(run.diff(run.snapshot().root, files.effect))
