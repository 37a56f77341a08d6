"""The lines that are different in a text file, as a unified diff that `patch` and `git apply` take."""

from __future__ import annotations

import sys
from difflib import unified_diff
from io import StringIO
from stat import S_ISREG

from freehold.cli.output import coloured, plain, say
from freehold.files import ReadFiles
from freehold.schema.changes import Change
from freehold.schema.limits import TEXT_DIFF_BYTES_MAX, TEXT_DIFF_LINES_MAX

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_UNENDED = "\n\\ No newline at end of file\n"


def unified(before: ReadFiles, after: ReadFiles, change: Change) -> str | None:
    """Return a file's change of content as text; None of what has no text: another kind of change, a link, a large or binary file."""
    if change.kind not in ("added", "changed", "removed"):
        return None
    old, new = _lines(before, change.before), _lines(after, change.after)
    if old is None or new is None:
        return None
    old_name, new_name = (f"{side}/{path}" if path else "/dev/null" for side, path in (("a", change.before), ("b", change.after)))
    lines = unified_diff(old, new, old_name, new_name)
    return "".join(line if line.endswith("\n") else line + _UNENDED for line in lines)


def say_lines(text: str) -> None:
    """Write a unified diff to standard output; to a terminal in colours, and without the control characters that are in it."""
    if not sys.stdout.isatty():
        say(text)
        return
    for line in StringIO(text, newline="\n"):
        shown = "\t".join(map(plain, line.removesuffix("\n").split("\t")))
        say(coloured(shown, _COLOURS[line[0]]) + "\n" if line[0] in _COLOURS else shown + "\n")


def _lines(files: ReadFiles, path: str | None) -> list[str] | None:
    """Return the lines of a text file, of no file none; None of what is no text that lines are compared of."""
    if path is None:
        return []
    stat = files.stat(path, follow_symlinks=False)
    if not S_ISREG(stat.st_mode) or stat.st_size > TEXT_DIFF_BYTES_MAX:
        return None
    content = files.read_bytes(path)
    if b"\0" in content or content.count(b"\n") >= TEXT_DIFF_LINES_MAX:
        return None
    try:
        return list(StringIO(content.decode(), newline="\n"))
    except UnicodeDecodeError:
        return None
