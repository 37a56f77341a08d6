"""What a host file is, and what is said of a file of that name that is none, or that SQLite or the kernel cannot use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from freehold.schema.ddl import host_statements
from freehold.schema.errors import Damaged, Error, Refused, StorageFailed, Unavailable
from freehold.schema.version import HOST_FILE_ID, HOST_FILE_VERSION
from freehold.storage import faults, platform
from freehold.storage.faults import SqliteError
from freehold.storage.manifest import manifest_of, read_manifest

FILE_NAME = ".host.sqlite"
"""A name that no run id can have."""


def fill(db: apsw.Connection) -> None:
    """Make an empty file a host file. A crash leaves it empty, or whole: the caller's transaction is its first."""
    db.pragma("application_id", HOST_FILE_ID)
    db.execute(host_statements())
    db.pragma("user_version", HOST_FILE_VERSION)


def check(db: apsw.Connection, file: str) -> None:
    """Make sure that *db* has the ids and exactly the structure of a host file of this version.

    Raises Refused (not_a_host_file, host_file_version), Damaged (host_file_damaged).
    """
    check_ids(db.pragma("application_id") & 0xFFFFFFFF, db.pragma("user_version"), file)
    try:
        same = read_manifest(db) == manifest_of(host_statements())
    except UnicodeDecodeError:  # its text quotes what it could not read
        same = False
    if not same:
        raise _version(file, f"has other tables than a host file of version {HOST_FILE_VERSION}", HOST_FILE_VERSION)


def check_ids(application_id: int, user_version: int, file: str) -> None:
    """Look at the two numbers that say what the file is. Raises Refused (not_a_host_file, host_file_version)."""
    if application_id != HOST_FILE_ID:
        raise not_a_host_file(file)
    if user_version != HOST_FILE_VERSION:
        raise _version(file, f"is a host file of version {user_version}, this build keeps version {HOST_FILE_VERSION}", user_version)


def not_a_host_file(file: str) -> Refused:
    """Return what is said of something else that has the host file's name."""
    return Refused(
        f"{file} is not a host file; it was left unchanged. Nothing of a run is in a file of that name: unless it is yours, delete it",
        code="not_a_host_file",
    )


@contextmanager
def said(file: str, busy_ms: int) -> Iterator[None]:
    """Say what SQLite and the kernel say of the host file as errors of ours."""
    try:
        yield
    except SqliteError as error:
        raise _as_ours(error, file, busy_ms) from None
    except UnicodeDecodeError:
        raise damaged(file, "holds text that is none") from None
    except FileNotFoundError:
        raise removed(file) from None
    except PermissionError:
        raise Refused(f"{file} may not be read or written by this user; it was left unchanged", code="no_permission") from None
    except OSError as error:
        raise platform.no_descriptors(error) or _failed(file, os.strerror(error.errno or 0)) from None


def _as_ours(error: SqliteError, file: str, busy_ms: int) -> Error:
    if faults.is_busy(error):
        seconds = busy_ms / 1000
        return Unavailable(
            f"another program holds the write lock of {file}; waited {seconds:g} seconds, and nothing was changed",
            code="database_busy",
            file=file,
            seconds=seconds,
        )
    if faults.is_damage(error):
        return damaged(file, "cannot be read as a database")
    if faults.is_unopenable(error) and (none_left := platform.no_descriptors()) is not None:
        return none_left
    return faults.failed(error, "body", rolled_back=True)


def removed(file: str) -> Error:
    """Return what is said when the file is not there any more, or its folder."""
    if not os.path.isdir(os.path.dirname(file)):
        return Refused(f"there is no folder for {file}; nothing was created", code="bad_root")
    return Unavailable(f"{file} was removed just now; nothing was changed", code="changed_while_reading")


def _version(file: str, what: str, found: int) -> Refused:
    text = f"{file} {what}; it was left unchanged. It is a cache and may be deleted"
    return Refused(text, code="host_file_version", found=found, supported=HOST_FILE_VERSION)


def damaged(file: str, what: str) -> Damaged:
    """Return that the file cannot be read; *what* completes the sentence that its path begins."""
    return Damaged(f"{file} {what}; it was left unchanged. It is a cache and may be deleted", code="host_file_damaged")


def _failed(file: str, why: str) -> StorageFailed:
    return StorageFailed(f"{file} cannot be used ({why}); nothing was changed", phase="begin", rolled_back=True, sqlite_extended_code=0)
