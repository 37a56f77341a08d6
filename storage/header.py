"""The first 100 bytes of a run file, read by hand: what can be told before SQLite is let near it.

Pure functions over bytes and numbers. The order is: is it a run at all, of which version, is it whole.
"""

from __future__ import annotations

from freehold.schema.errors import Damaged, Error, Refused
from freehold.schema.version import APPLICATION_ID, SCHEMA_VERSION
from freehold.storage.path import RunPath

HEADER_BYTES = 100
PAGE_SIZE = 4096
_MAGIC = b"SQLite format 3\x00"
_WAL_FORMAT = b"\x02\x02"
_UTF8 = 1


def check_header(raw: bytes, size: int, path: RunPath) -> None:
    """Look at the first bytes of a file of *size* bytes that has no -wal.

    Raises Refused (not_a_run, newer_version, older_version) and Damaged (partial; damaged, whose detail `rule` says
    what is wrong).
    """
    if size == 0:
        raise broken("zero_length", "is empty", path)
    if not raw or not _MAGIC.startswith(raw[: len(_MAGIC)]):
        raise not_a_run(path)
    if len(raw) < HEADER_BYTES:
        raise broken("truncated", "is cut short within its header", path)
    check_ids(_number(raw, 68, 4), _number(raw, 60, 4), path)
    # A page size of 65536 is written as 1, which is as wrong here as any other.
    if _number(raw, 16, 2) != PAGE_SIZE or raw[20] != 0:
        raise broken("page_size", f"has not pages of {PAGE_SIZE} bytes without reserved ones", path)
    if raw[18:20] != _WAL_FORMAT:
        raise broken("format", "is not in WAL format", path)
    if _number(raw, 56, 4) != _UTF8:
        raise broken("encoding", "is not in UTF-8", path)
    # The page count in the header is right only if written by the change that is counted last.
    counted = raw[24:28] == raw[92:96]
    if size % PAGE_SIZE or (counted and _number(raw, 28, 4) * PAGE_SIZE > size):
        raise broken("truncated", "is shorter than its header says", path)


def check_header_beside_wal(raw: bytes, size: int, path: RunPath) -> None:
    """Look at the first bytes of a file that has a -wal, in which a newer first page may stand.

    Only what no write of ours ever changes is looked at. SQLite would delete the -wal of an empty file, and of one that
    is not in WAL format, before anybody could read it.
    Raises Refused (not_a_run) and Damaged.
    """
    if size == 0:
        raise broken("zero_length", "is empty, with a -wal beside it", path)
    if raw[: len(_MAGIC)] != _MAGIC:
        raise not_a_run(path)
    if size < PAGE_SIZE:
        raise broken("truncated", "is shorter than a page", path)
    if raw[18:20] != _WAL_FORMAT:
        raise not_a_run(path) if _number(raw, 68, 4) != APPLICATION_ID else broken("format", "is not in WAL format", path)


def ids_in(raw: bytes) -> tuple[int, int] | None:
    """Return application id and user version of a database whose first bytes these are, or None if it is none."""
    if len(raw) < HEADER_BYTES or raw[: len(_MAGIC)] != _MAGIC:
        return None
    return _number(raw, 68, 4), _number(raw, 60, 4)


def check_ids(application_id: int, user_version: int, path: RunPath) -> None:
    """Look at the two numbers that say what the file is.

    Raises Refused (not_a_run, newer_version, older_version) and Damaged (partial).
    """
    if application_id != APPLICATION_ID:
        raise not_a_run(path)
    if user_version == 0:
        raise Damaged(
            f"{path.file} is a run file whose creation was never completed; it was left unchanged", code="partial", rule="user_version"
        )
    if user_version == SCHEMA_VERSION:
        return
    newer = not 0 < user_version < SCHEMA_VERSION
    raise Refused(
        f"{path.file} is of version {user_version}, this build reads version {SCHEMA_VERSION}; it was left unchanged",
        code="newer_version" if newer else "older_version",
        found=user_version,
        supported=SCHEMA_VERSION,
    )


def not_a_run(path: RunPath) -> Error:
    """Return what is said of a file that is none of ours."""
    return Refused(f"{path.file} is not a run file; it was left unchanged", code="not_a_run")


def broken(rule: str, what: str, path: RunPath) -> Damaged:
    """Return that the file breaks *rule*; *what* completes the sentence that its path begins."""
    return Damaged(f"{path.file} {what}; it was left unchanged", rule=rule)


def _number(raw: bytes, at: int, length: int) -> int:
    return int.from_bytes(raw[at : at + length], "big")
