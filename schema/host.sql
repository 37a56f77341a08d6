-- Version 1 of the host file, `.host.sqlite`: what the processes that use one folder of runs tell each other. A cache: it may be deleted
-- at any time. `run` is a run's id, or the whole path of its file if that lies in another folder. Times are integer milliseconds since
-- 1970, UTC, unless they end in _ns. Every CHECK ends in IS TRUE: one whose value is NULL would pass.

-- What a run file said when it was looked at last, and what it and its -wal looked like then. `sealed`: its owner has set its time.
CREATE TABLE known (
    run           TEXT PRIMARY KEY,
    dev           INTEGER NOT NULL,
    ino           INTEGER NOT NULL,
    size          INTEGER NOT NULL,
    mtime_ns      INTEGER NOT NULL,
    ctime_ns      INTEGER NOT NULL,
    wal_size      INTEGER NOT NULL,
    wal_mtime_ns  INTEGER NOT NULL,
    sealed        INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    events        INTEGER NOT NULL,
    project       TEXT NOT NULL,
    workflow      TEXT,
    definition    BLOB,
    props         TEXT NOT NULL,
    status        TEXT NOT NULL,
    stop_kind     TEXT,
    stop_code     TEXT,
    stop_event    INTEGER,
    epoch         INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    txn           INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    CHECK ((length(run) > 0 AND size > 0 AND wal_size >= 0 AND sealed IN (0, 1) AND seen_at >= 0 AND events > 0) IS TRUE),
    CHECK ((status IN ('created', 'running', 'suspended', 'interrupted', 'completed', 'failed', 'cancelled')) IS TRUE),
    CHECK ((json_valid(props) AND json_type(props) = 'object') IS TRUE),
    CHECK ((epoch >= 0 AND generation >= 0 AND txn > 0 AND created_at >= 0 AND updated_at >= 0) IS TRUE)
) STRICT, WITHOUT ROWID;

-- The hosts that own runs of this folder: one row each, for as long as its process lives. `socket` is a name in the folder.
CREATE TABLE host (
    id         BLOB PRIMARY KEY,
    hostname   TEXT NOT NULL,
    boot       BLOB NOT NULL,
    pid        INTEGER NOT NULL,
    pid_ns     INTEGER NOT NULL,
    pid_start  INTEGER NOT NULL,
    socket     TEXT,
    opened_at  INTEGER NOT NULL,
    CHECK ((length(id) = 16 AND length(hostname) > 0 AND length(boot) = 16) IS TRUE),
    CHECK ((pid > 0 AND pid_ns >= 0 AND pid_start >= 0 AND opened_at >= 0) IS TRUE),
    CHECK ((socket IS NULL OR length(socket) > 0) IS TRUE)
) STRICT, WITHOUT ROWID;

-- Which host drives a run. A host's rows go with it.
CREATE TABLE driver (
    run    TEXT PRIMARY KEY,
    host   BLOB NOT NULL REFERENCES host (id) ON DELETE CASCADE,
    since  INTEGER NOT NULL,
    CHECK ((length(run) > 0 AND since >= 0) IS TRUE)
) STRICT, WITHOUT ROWID;
CREATE INDEX driver_host ON driver (host);

-- When a run wants to be looked at, and why. The run's own file says so too; who has it driven writes it here again.
CREATE TABLE wakeup (
    run     TEXT NOT NULL,
    why     TEXT NOT NULL,
    due_at  INTEGER NOT NULL,
    PRIMARY KEY (run, why),
    CHECK ((length(run) > 0 AND length(why) > 0 AND due_at >= 0) IS TRUE)
) STRICT, WITHOUT ROWID;
CREATE INDEX wakeup_due ON wakeup (due_at);
