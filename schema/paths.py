"""What a path of a workspace is: names below its root, each portable to every system that people carry files to.

Nothing is normalised: what would have to be changed is refused, so that a name is read back as it was written.
"""

from __future__ import annotations

import re
from typing import Protocol
from unicodedata import is_normalized, normalize

from freehold.schema.errors import PathRefused
from freehold.schema.limits import ENTRY_NAME_BYTES_MAX, PATH_BYTES_MAX, PATH_DEPTH_MAX, PATH_SHOWN_CHARS_MAX

Parts = tuple[str, ...]
"""The names on the way from the root; the root itself is `()`."""

_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\]')
_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"} | {f"{port}{digit}" for port in ("COM", "LPT") for digit in "123456789\xb9\xb2\xb3"}
)
"""What Windows takes for a device, whatever stands behind the first dot."""


class PathObject(Protocol):
    """A path of whatever module: anything with `__fspath__`, as `os.PathLike[str]` is."""

    def __fspath__(self) -> str:
        """Return the path as text."""


def parse(path: str | PathObject) -> Parts:
    """Return the names in *path*, which is relative to the workspace; `.` is the workspace itself.

    As in pathlib `.`, doubled and trailing slashes are dropped. Raises PathRefused for what a workspace cannot hold:
    an empty or absolute path, one with `..` in it, one too long or too deep, a name that is not portable.
    """
    given = plain(path)
    if not given:
        raise _refused(given, "is not empty; '.' is the workspace itself")
    if given[0] == "/":
        raise _refused(given, "is relative to the workspace: it does not begin with a slash")
    parts = tuple(name for name in given.split("/") if name and name != ".")
    if len(parts) > PATH_DEPTH_MAX:
        raise _refused(given, f"has at most {PATH_DEPTH_MAX} names")
    for name in parts:
        if (reason := _unfit(name) or unportable(name)) is not None:
            raise _refused(given, f"has {reason}")
    if len(text(parts).encode()) > PATH_BYTES_MAX:
        raise _refused(given, f"has at most {PATH_BYTES_MAX} bytes")
    return parts


def text(parts: Parts) -> str:
    """Return a path as users write it; the workspace itself is `.`."""
    return "/".join(parts) or "."


def is_entry_name(name: str) -> bool:
    """Return whether a directory can hold *name*, whatever the profile of names: the rule for what is stored already."""
    return bool(name) and "/" not in name and name != "." and _unfit(name) is None


def unportable(name: str) -> str | None:
    """Return which rule of the portable profile a name breaks, as what a path must have; None where it breaks none."""
    if _FORBIDDEN.search(name):
        return 'no backslash, no control character and none of < > : " | ? * in a name'
    if name[-1:] in {".", " "}:
        return "no name that ends with a dot or a space"
    if name.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return "no name that is a device on Windows (CON, PRN, AUX, NUL, COM1, LPT1 and their like, with any ending)"
    if not name.isascii() and not is_normalized("NFC", name):
        return "only names in Unicode's normal form C"
    return None


def fold(name: str) -> str:
    """Return the key that two names of one directory must not share: a system that ignores case would take them for one."""
    if name.isascii():
        return name.lower()
    # Unicode's canonical caseless match (D145): casefolding undoes some compositions and makes others possible.
    return normalize("NFC", normalize("NFD", name).casefold())


def _unfit(name: str) -> str | None:
    if name == "..":
        return "no '..' in it"
    if "\x00" in name:
        return "no NUL in it"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "only text that UTF-8 can say: no lone surrogates"
    if size > ENTRY_NAME_BYTES_MAX:
        return f"no name of more than {ENTRY_NAME_BYTES_MAX} bytes"
    return None


def plain(path: object) -> str:
    """Return a path as text, whatever class it is of. Raises PathRefused for what is no path."""
    if not isinstance(path, str):
        ask = getattr(type(path), "__fspath__", None)
        path = path if ask is None else ask(path)
        if not isinstance(path, str):
            raise PathRefused(f"a path in a workspace is text, not {type(path).__name__}; nothing was changed")
    return str.__str__(path)  # a subclass may say anything of itself in its own __str__


def _refused(given: str, rule: str) -> PathRefused:
    shown = repr(given if len(given) <= PATH_SHOWN_CHARS_MAX else given[:PATH_SHOWN_CHARS_MAX] + "…")
    return PathRefused(f"{shown}: a path in a workspace {rule}; nothing was changed")
