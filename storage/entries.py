"""What is to be written into a folder, checked as a whole before anything of it is: names, order, parents, collisions."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from freehold.schema.errors import PathRefused, Refused
from freehold.schema.limits import ENTRIES_AT_ONCE_MAX, ENTRY_NAME_BYTES_MAX, LINK_TARGET_BYTES_MAX, PATH_BYTES_MAX, PATH_DEPTH_MAX
from freehold.schema.skipped import Parts

SameName = Callable[[int, str, str], bool]
"""Whether the file system under a folder's descriptor takes two names for one."""


class Out(NamedTuple):
    """One entry to be written. A file has its size and content key, a link its target."""

    parts: Parts
    kind: Literal["file", "directory", "link"]
    mode: int = 0o755
    size: int = 0
    target: str = ""
    content: bytes = b""


def check_count(entries: int) -> None:
    """Raise Refused (too_many_entries) for more than may be held at once."""
    if entries > ENTRIES_AT_ONCE_MAX:
        raise too_many()


def too_many() -> Refused:
    """Return what is said of more entries than may be held at once."""
    return Refused(f"more than {ENTRIES_AT_ONCE_MAX:,} entries are too many at once; nothing was written", code="too_many_entries")


def checked(entries: Iterable[Out]) -> list[Out]:
    """Return *entries* if they are a tree: each once, in the order of their paths, after the folder that holds it.

    Raises PathRefused, Refused (too_many_entries); nothing was written.
    """
    found: list[Out] = []
    above: list[Parts] = [()]
    last: Parts = ()
    for out in entries:
        _check_entry(out)
        if out.parts <= last:
            raise _refused(out, "comes twice" if out.parts == last else "comes out of order")
        while above and above[-1] != out.parts[: len(above[-1])]:
            above.pop()
        if above[-1] != out.parts[:-1]:
            raise _refused(out, "has no folder that holds it")
        if out.kind == "directory":
            above.append(out.parts)
        last = out.parts
        found.append(out)
        check_count(len(found))
    return found


def check_folding(entries: Sequence[Out], probe_fd: int, same_name: SameName) -> None:
    """Raise PathRefused where the target's file system takes two names of one folder for one."""
    for first, second in _alike(entries):
        if same_name(probe_fd, first.parts[-1], second.parts[-1]):
            raise _refused(second, f"and {'/'.join(first.parts)} are one name where they are to be written")


def _check_entry(out: Out) -> None:
    if not out.parts or any(not _is_name(name) for name in out.parts[-1:]):
        raise _refused(out, "is not a single name in a folder")
    if len(out.parts) > PATH_DEPTH_MAX or len("/".join(out.parts).encode("utf-8", "surrogatepass")) > PATH_BYTES_MAX:
        raise _refused(out, "is too long or too deep")
    if not 0 <= out.mode <= 0o777:
        raise _refused(out, "has a mode that is not one of 0 to 0o777")
    if out.kind == "link" and not _is_target(out.target):
        raise _refused(out, f"has a target that is not 1 to {LINK_TARGET_BYTES_MAX} bytes of text")


def _is_name(name: str) -> bool:
    return name not in {"", ".", ".."} and not {"/", "\0"} & set(name) and 0 < _bytes(name) <= ENTRY_NAME_BYTES_MAX


def _is_target(target: str) -> bool:
    return "\0" not in target and 0 < _bytes(target) <= LINK_TARGET_BYTES_MAX


def _bytes(text: str) -> int:
    """Return how long *text* is in UTF-8; -1 for a text that has lone surrogates."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1


def _alike(entries: Sequence[Out]) -> Iterator[tuple[Out, Out]]:
    """Yield the pairs of one folder that some file system might take for one; which ones this one does, only a probe tells."""
    folders: list[dict[str, Out]] = [{}]
    for out in entries:
        del folders[len(out.parts) :]
        key = _widest_fold(out.parts[-1])
        if (first := folders[-1].setdefault(key, out)) is not out:
            yield first, out
        if out.kind == "directory":
            folders.append({})


def _widest_fold(name: str) -> str:
    """Return a text that is equal for names that any file system we know of takes for one: case, form, invisible signs, tails."""
    if name.isascii():
        return name.lower().rstrip(" .")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", name).casefold()).casefold()
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf").rstrip(" .")


def _refused(out: Out, rule: str) -> PathRefused:
    path = "/".join(out.parts).encode("utf-8", "backslashreplace").decode()
    return PathRefused(f"{path!r} {rule}; nothing was written", code="bad_path", path=path)
