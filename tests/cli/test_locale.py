"""Names on the disk are UTF-8, whatever the locale says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from program import run_program

import freehold
from freehold.files import Files

ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale in which Python takes the names of files for ASCII."""


def furnish(files: Files) -> None:
    files.mkdir("grün/ß", parents=True)
    files.write_text("grün/ä", "text")
    files.symlink("grün/zu", "ä")
    files.write_text("日本", "old")
    files.chmod("grün/ß", 0)


def raw_tree(top: Path) -> dict[bytes, bytes]:
    """Return the names beneath a folder and what links say, as they are on the disk."""
    return {os.fsencode(path.relative_to(top)): os.fsencode(path.readlink()) if path.is_symlink() else b"" for path in top.rglob("*")}


@pytest.mark.parametrize("target", ["out", "grün"])
def test_a_folder_is_the_same_in_a_locale_that_knows_no_letter_of_it(root: Path, tmp_path: Path, target: str) -> None:
    names = {"grün", "grün/ß", "grün/ä", "grün/zu", "日本"}
    right = {name.encode(): "ä".encode() if name == "grün/zu" else b"" for name in names}
    with freehold.open(root) as host, host.create("a") as run:
        run.publish("furnish", furnish)
        before = run.files.root

    options = ("--root", str(root))
    assert run_program(*options, "checkout", "a", target, cwd=tmp_path, **ASCII).code == 0
    assert raw_tree(tmp_path / target) == right

    (tmp_path / target / "日本").write_text("changed")
    (tmp_path / target / "grün" / "zu").unlink()
    (tmp_path / target / "mehr Grün").touch()
    (tmp_path / target / "é").mkdir()
    done = run_program(*options, "checkout", "a", target, "--replace", "always", "--json", cwd=tmp_path, **ASCII)
    assert (done.code, done.document["written"], done.document["removed"]) == (0, 2, 2)
    assert raw_tree(tmp_path / target) == right

    (tmp_path / target / "日本").unlink()
    (tmp_path / target / "日本").mkdir()
    done = run_program(*options, "checkout", "a", target, "--replace", "changed", cwd=tmp_path, **ASCII)
    assert done.code not in {0, 70}
    (tmp_path / target / "日本").rmdir()
    (tmp_path / target / "日本").write_text("old")
    assert run_program(*options, "create", "b", cwd=tmp_path, **ASCII).code == 0
    done = run_program(*options, "import", "b", target, "--json", cwd=tmp_path, **ASCII)
    assert (done.code, json.loads(done.out).get("skipped", [])) == (0, [])
    assert freehold.view(root / "b.sqlite").files.root == before
