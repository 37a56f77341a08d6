-- Version 1 of the run file. docs/FORMAT.md explains each table and column; a test compares a file's text with this one.
-- Ids are UUIDv7 as 16 bytes, hashes 32 bytes, times integer milliseconds since 1970, UTC.
-- Every CHECK ends in IS TRUE: one whose value is NULL would pass.

-- Immutable, content-addressed pieces. Kinds: 0 chunk, 1 directory node, 2 file index, 3 root, 4 value. Codecs: 0 raw, 1 zstd.
CREATE TABLE object (
    id     INTEGER PRIMARY KEY,
    hash   BLOB NOT NULL UNIQUE,
    kind   INTEGER NOT NULL,
    size   INTEGER NOT NULL,
    codec  INTEGER NOT NULL,
    data   BLOB NOT NULL,
    CHECK ((id > 0 AND length(hash) = 32 AND kind BETWEEN 0 AND 4 AND size >= 0 AND codec IN (0, 1)) IS TRUE),
    CHECK ((codec = 1 OR length(data) = size) IS TRUE)
) STRICT;

-- Objects that were written ahead of their publish. The publish removes them from here; what stays was never published.
CREATE TABLE staged (
    object  INTEGER PRIMARY KEY REFERENCES object (id),
    CHECK ((object > 0) IS TRUE)
) STRICT;

-- The identity of a whole workspace tree. Roots stay for ever; their content may be forgotten (object becomes NULL).
CREATE TABLE root (
    id           INTEGER PRIMARY KEY,
    hash         BLOB NOT NULL UNIQUE,
    object       INTEGER UNIQUE REFERENCES object (id),
    dropped_seq  INTEGER,
    CHECK ((id > 0 AND length(hash) = 32) IS TRUE),
    CHECK (((object IS NULL) = (dropped_seq IS NOT NULL) AND (dropped_seq IS NULL OR dropped_seq > 0)) IS TRUE)
) STRICT;

-- The journal: one immutable record each, in order, hash-chained, naming the root that was current at that moment.
-- A position has one outcome (phase 2) for ever. One that begins with key/ is the user's own and stands outside of executions.
CREATE TABLE event (
    seq          INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    kind         TEXT NOT NULL,
    name         TEXT,
    execution    INTEGER REFERENCES execution (id),
    position     TEXT,
    phase        INTEGER,
    attempt      INTEGER,
    record       TEXT NOT NULL,
    value        INTEGER REFERENCES object (id),
    root         INTEGER NOT NULL REFERENCES root (id),
    recorded_at  INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    CHECK ((seq > 0 AND length(id) = 16 AND length(hash) = 32 AND recorded_at >= 0 AND json_valid(record)) IS TRUE),
    CHECK ((kind IN ('created', 'note', 'publish', 'began', 'settled', 'step')) IS TRUE),
    CHECK (((kind = 'created') = (seq = 1)) IS TRUE),
    CHECK (((kind IN ('note', 'publish', 'step')) = (name IS NOT NULL) AND (name IS NULL OR length(name) > 0)) IS TRUE),
    CHECK ((kind NOT IN ('began', 'settled') OR execution IS NOT NULL) IS TRUE),
    CHECK (((position IS NULL) = (phase IS NULL) AND (phase IS NULL) = (attempt IS NULL)) IS TRUE),
    CHECK (((kind = 'step') = (position IS NOT NULL)) IS TRUE),
    CHECK ((position IS NULL OR (length(position) > 0 AND phase IN (0, 1, 2) AND attempt > 0)) IS TRUE),
    CHECK ((position IS NULL OR (execution IS NULL) = (length(position) > 4 AND substr(position, 1, 4) = 'key/')) IS TRUE)
) STRICT;
CREATE INDEX event_value ON event (value) WHERE value IS NOT NULL;
CREATE UNIQUE INDEX event_outcome ON event (position) WHERE phase = 2;
CREATE UNIQUE INDEX event_attempt ON event (position, attempt, phase) WHERE phase < 2;

-- Names for roots: `current` is always there, pins are others.
CREATE TABLE ref (
    name       TEXT PRIMARY KEY,
    root       INTEGER NOT NULL REFERENCES root (id),
    moved_seq  INTEGER NOT NULL REFERENCES event (seq),
    CHECK ((length(name) > 0) IS TRUE)
) STRICT, WITHOUT ROWID;
CREATE INDEX ref_root ON ref (root);

-- The one row that says what this run is. A stop has three shapes: none, the host's (a code), the journal's (an event).
CREATE TABLE run (
    one         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL,
    project     TEXT NOT NULL,
    workflow    TEXT,
    definition  BLOB,
    props       TEXT NOT NULL,
    status      TEXT NOT NULL,
    stop_kind   TEXT,
    stop_code   TEXT,
    stop_event  INTEGER REFERENCES event (seq),
    epoch       INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    txn         INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    CHECK ((one = 1 AND length(id) BETWEEN 1 AND 128 AND json_valid(props) AND json_type(props) = 'object') IS TRUE),
    CHECK ((status IN ('created', 'running', 'suspended', 'interrupted', 'completed', 'failed', 'cancelled')) IS TRUE),
    CHECK (((stop_kind IS NULL) = (status IN ('created', 'running'))) IS TRUE),
    CHECK ((CASE
        WHEN stop_kind IS NULL THEN stop_code IS NULL AND stop_event IS NULL
        WHEN stop_kind = 'host' THEN length(stop_code) > 0 AND stop_event IS NULL
        WHEN stop_kind = 'journal' THEN stop_code IS NULL AND stop_event IS NOT NULL
        ELSE FALSE END) IS TRUE),
    CHECK ((workflow IS NULL OR length(workflow) > 0) IS TRUE),
    CHECK ((epoch >= 0 AND generation >= 0 AND txn > 0 AND created_at >= 0 AND updated_at >= 0) IS TRUE)
) STRICT;

-- Who owned the file, when: one row a take-over.
CREATE TABLE tenure (
    epoch      INTEGER PRIMARY KEY,
    first_txn  INTEGER NOT NULL UNIQUE,
    host       TEXT NOT NULL,
    boot       BLOB NOT NULL,
    pid        INTEGER NOT NULL,
    pid_ns     INTEGER NOT NULL,
    pid_start  INTEGER NOT NULL,
    opened_at  INTEGER NOT NULL,
    closed_at  INTEGER,
    socket     TEXT,
    CHECK ((epoch > 0 AND first_txn > 1 AND length(host) > 0 AND length(boot) = 16) IS TRUE),
    CHECK ((pid > 0 AND pid_ns >= 0 AND pid_start >= 0) IS TRUE),
    CHECK ((opened_at >= 0 AND (closed_at IS NULL OR closed_at >= 0)) IS TRUE),
    CHECK ((socket IS NULL OR (length(socket) = 27 AND socket GLOB '.host-*.sock' AND substr(socket, 7, 16) NOT GLOB '*[^0-9a-f]*')) IS TRUE)
) STRICT;

-- One attempt to drive the run to its end. At most one is running.
CREATE TABLE execution (
    id          INTEGER PRIMARY KEY,
    generation  INTEGER NOT NULL,
    epoch       INTEGER NOT NULL REFERENCES tenure (epoch),
    definition  BLOB NOT NULL,
    status      TEXT NOT NULL,
    began_seq   INTEGER NOT NULL UNIQUE,
    ended_seq   INTEGER,
    stop_kind   TEXT,
    stop_code   TEXT,
    stop_event  INTEGER REFERENCES event (seq),
    CHECK ((id > 0 AND generation >= 0 AND began_seq > 1) IS TRUE),
    CHECK ((status IN ('running', 'suspended', 'interrupted', 'completed', 'failed', 'cancelled')) IS TRUE),
    CHECK (((status = 'running') = (ended_seq IS NULL) AND (status = 'running') = (stop_kind IS NULL)) IS TRUE),
    CHECK ((ended_seq IS NULL OR ended_seq >= began_seq) IS TRUE),
    CHECK ((CASE
        WHEN stop_kind IS NULL THEN stop_code IS NULL AND stop_event IS NULL
        WHEN stop_kind = 'host' THEN length(stop_code) > 0 AND stop_event IS NULL
        WHEN stop_kind = 'journal' THEN stop_code IS NULL AND stop_event IS NOT NULL
        ELSE FALSE END) IS TRUE)
) STRICT;
CREATE UNIQUE INDEX execution_running ON execution (status) WHERE status = 'running';

-- A step that touches the world, noted before it begins. Open: nobody knows what became of it. Unknown: nobody ever will.
CREATE TABLE intent (
    position         TEXT NOT NULL,
    attempt          INTEGER NOT NULL,
    policy           TEXT NOT NULL,
    idempotency_key  TEXT NOT NULL,
    opened_seq       INTEGER NOT NULL UNIQUE REFERENCES event (seq),
    settled_seq      INTEGER UNIQUE REFERENCES event (seq),
    state            TEXT NOT NULL,
    PRIMARY KEY (position, attempt),
    CHECK ((length(position) > 0 AND attempt > 0 AND opened_seq > 1) IS TRUE),
    CHECK ((policy IN ('probe', 'park') AND length(idempotency_key) BETWEEN 1 AND 255) IS TRUE),
    CHECK ((state IN ('open', 'done', 'not_done', 'unknown')) IS TRUE),
    CHECK (((state IN ('done', 'not_done')) = (settled_seq IS NOT NULL)) IS TRUE),
    CHECK ((settled_seq IS NULL OR settled_seq > opened_seq) IS TRUE)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX intent_open ON intent (position) WHERE state = 'open';

-- What a request id was used for. An append's reply is its event (seq); a transaction's reply is kept for 30 days.
CREATE TABLE request (
    id      TEXT PRIMARY KEY,
    digest  BLOB NOT NULL,
    txn     INTEGER NOT NULL,
    seq     INTEGER REFERENCES event (seq),
    reply   BLOB,
    at      INTEGER NOT NULL,
    CHECK ((length(id) BETWEEN 1 AND 128 AND length(digest) = 32 AND txn > 1 AND at >= 0) IS TRUE),
    CHECK ((reply IS NULL OR (seq IS NULL AND length(reply) <= 65536)) IS TRUE)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_reply ON request (at) WHERE reply IS NOT NULL;
