"""The version numbers of a run file, and the oldest SQLite that may write one.

Three numbers, never confused: the schema of the file, the format of a workspace root, the format of an event.
"""

APPLICATION_ID = 0x46524844
"""`FRHD`, big-endian, in the header of every run file."""

STAT_CACHE_ID = 0x46524853
"""`FRHS`: the header of a folder's stat cache."""

HOST_FILE_ID = 0x46524848
"""`FRHH`: the header of a folder's host file."""

HOST_FILE_VERSION = 1
"""`user_version` of a host file. One of another version is left alone; whoever wants this build to keep one deletes it."""

SCHEMA_VERSION = 1
"""`user_version` of a run file. Until release 1.0 version 1 is completed in place."""

ROOT_FORMAT = 1
"""First element of every root object."""

EVENT_FORMAT = 1
"""Last byte of the domain tag of every event hash."""

SQLITE_MIN = (3, 51, 3)
"""Before 3.51.3 two connections that write and checkpoint at once can lose a WAL (sqlite.org/wal.html#walresetbug)."""
