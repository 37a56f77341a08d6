"""A number on everything that can grow. Units last in the name."""

RUN_ID_CHARS_MAX = 128
NAME_CHARS_MAX = 256
REQUEST_ID_CHARS_MAX = 128
PROJECT_CHARS_MAX = 256
STOP_CODE_CHARS_MAX = 64
STEP_KEY_CHARS_MAX = 128
IDEMPOTENCY_KEY_CHARS_MAX = 255

COUNT_MAX = 2**62
"""More than anything is ever counted to; a forged number must leave room for the next ones."""

VALUE_DEPTH_MAX = 100
VALUE_BYTES_MAX = 16 * 1024 * 1024
OBJECT_BYTES_MAX = 2 * VALUE_BYTES_MAX
"""More than any object of this version takes; a forged row must not make us allocate more."""
PROPS_BYTES_MAX = 64 * 1024
REPLY_BYTES_MAX = 64 * 1024
APPLY_OPERATIONS_MAX = 1_000
"""How many operations a transaction as data has: it is one turn, and everybody else waits for its end."""
APPLY_BYTES_MAX = VALUE_BYTES_MAX
FAILURE_TEXT_BYTES_MAX = 8 * 1024
"""How much of each text of an exception is kept: its message, its traceback, all its notes, all its attributes."""
FAILURE_BYTES_MAX = 64 * 1024
FAILURE_CAUSES_MAX = 3
"""An exception is kept with what it was raised from, and that with its own cause."""
RECORD_INLINE_BYTES_MAX = 4 * 1024
"""A longer record becomes an object of its own, so that a scan of the journal stays cheap."""

CHUNK_BYTES = 64 * 1024
INLINE_BYTES_MAX = 128
"""A file of no more than this stands in its directory's node."""
INDEX_FAN_OUT = 128
"""How many chunks, or nodes of the level below, one node of a file's index names."""
INDEX_LEVELS_MAX = 4
FILE_BYTES_MAX = CHUNK_BYTES * INDEX_FAN_OUT**INDEX_LEVELS_MAX
"""What the highest index holds: 16 TiB."""
DIRTY_BYTES_MAX = 4 * 1024 * 1024
"""How much of what was written to an open file waits in memory before it is kept as objects."""
NODE_ENTRIES_MAX = 128
LONE_NODE_ENTRIES_MAX = 64
"""A level of a directory with no more entries than this is one node, wherever its names would be cut."""
CUT_BELOW = 2**32 // 32
"""A name whose draw is below this ends its node: one of 32 does."""
TREE_LEVELS_MAX = 16
TREE_BYTES_MAX = 2**63 - 1
"""The sizes of all files of a tree together, and likewise its entries: what SQLite and everybody else can count."""
ENTRY_NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4096
PATH_DEPTH_MAX = 256
PATH_SHOWN_CHARS_MAX = 120
"""How much of a path an error shows."""
LINK_TARGET_BYTES_MAX = 4095
LINK_HOPS_MAX = 40
READ_AHEAD_CHUNKS = 16
"""How many chunks of a file that is read from one to the next come with one message: a mebibyte."""
READ_AHEAD_NODES = 16
"""How many nodes of a directory that is walked through come with one message."""
PIECES_BYTES_MAX = 1024 * 1024
"""How much of a publish waits in memory before it is sent to the file."""
PUBLISH_TRIES_MAX = 20
"""How often a publish from another process meets a new root before it gives up: each time somebody else has published."""
SKIPPED_LISTED_MAX = 1_000
"""How many paths that an import could not take its event lists; of the rest it tells the number."""
NAMES_KEPT_MAX = 200_000
"""How many names of directories stay at hand, so that adding one need not read all the others again."""
ENTRIES_AT_ONCE_MAX = 2_000_000
"""How many entries a checkout writes or a listing holds. A folder that is copied into itself again and again soon has more."""
CHANGES_TOLD_MAX = 250_000
"""Where more paths are different, only the entries of the top directory are told."""
LOOK_ENTRIES = 1_000
"""How many entries a listing that is read step by step looks at in one look."""
PORTION_BYTES = 4 * 1024 * 1024
"""How much of a file is in memory at once while it is copied into or out of a run."""
COMPARED_NODES_MAX = 32
"""How many directory nodes the owner of a run reads in one turn to compare two roots: a millisecond or two."""
TEXT_DIFF_BYTES_MAX = 1024 * 1024
TEXT_DIFF_LINES_MAX = 20_000
"""Of larger files the lines are not compared: where the same few come again and again, that takes longer than anybody waits."""
NODE_BYTES_MAX = NODE_ENTRIES_MAX * (ENTRY_NAME_BYTES_MAX + LINK_TARGET_BYTES_MAX + 16)
"""More than any directory node takes: as many links as it may name, each as long as it may be."""
NODE_CACHE_BYTES_MAX = 4 * 1024 * 1024
"""Of encoded nodes; decoded they take some four times as much."""
CHECKED_NODES_MAX = 100_000
"""How many nodes a check of many roots remembers from one root to the next."""

STAT_CACHE_ENTRIES_MAX = 1_000_000
"""More than these, and the oldest are forgotten."""
STAT_CACHE_BATCH_ENTRIES = 1_000
STAT_CACHE_EXPECTED = 32
"""How many files of a folder are looked up with one query."""
TIMESTAMP_GRAIN_NS = 100_000_000
"""How far a file's time may lag behind the clock: a tick of the kernel is 10 ms at most, and may come late."""
COARSE_GRAIN_NS = 2_000_000_000
"""The same where a file's time has no parts of ten milliseconds: FAT counts in steps of 2 s."""
SYNC_EACH_ENTRIES_MAX = 64
"""Up to so many entries are synced one by one; for more, one sync of the whole file system is faster."""

KNOWN_BATCH_RUNS = 200
"""So many runs that were looked at are told to the host file at once."""
HOST_FILE_LOOK_S = 5.0
"""How often a host looks whether its host file is still there, and tries again when it could have none."""
HOST_FILE_TELL_BUSY_MS = 1_000
"""How long what nobody waits for waits for others who write into the host file. While it finds them at it, what follows does not wait."""
HOST_FILE_END_S = 2.0
"""How long the end of a host waits for its word in the host file, which a process that stands still may hold."""
KNOWN_TIMEOUT_S = 5.0
"""How long a listing waits for what the host file knows before it looks for itself."""
TREE_TIMEOUT_S = 3.0
"""How long `freehold tree` waits for the hosts of a folder, for all of them together."""
WAL_SWITCH_TRIES_MAX = 20

REQUEST_KEEP_S = 30 * 24 * 3600
"""How long a reply is kept. Its row stays for ever: the request is never run again."""

MAILBOX_MESSAGES_MAX = 10_000
MAILBOX_BYTES_MAX = 256 * 1024 * 1024
WAITERS_MAX = 1_000
"""How many may wait for one run's next event at a time."""
WAIT_BEYOND_S = 10.0
"""How long one of them waits at the longest before it has to ask again: whoever has gone does not stay."""
STEP_WAITERS_MAX = 1_000
"""How many may wait for steps of one run that others are at, at a time."""
BATCH_TURNS_MAX = 256
BATCH_BYTES_MAX = 4 * 1024 * 1024
BATCH_SECONDS_MAX = 0.025
HISTORY_PAGE_EVENTS = 500
HISTORY_PAGE_BYTES = 4 * 1024 * 1024

CHECKPOINT_PAGES = 1_000
IDLE_CHECKPOINT_S = 1.0
FOREIGN_KEYS_WHOLE_BYTES = 4 * 1024 * 1024
"""Up to this file size `foreign_key_check` runs whole at open; above it only the frontier is checked."""

PASSED_ON_S = 1.0
"""How long a run's owner that cannot be asked is looked for again: it may just be opening the file, or giving it back."""
OPENER_WAIT_S = 0.25
"""How long an opener waits for a reader's shared lock before it says that the run is owned elsewhere."""

REQUEST_FRAME_BYTES_MAX = OBJECT_BYTES_MAX + 1024 * 1024
"""What one process may ask of another at once: the longest record or object, and what belongs to it."""
REPLY_FRAME_BYTES_MAX = OBJECT_BYTES_MAX + HISTORY_PAGE_BYTES + 1024 * 1024
"""The longest answer: a page of the journal whose last event has the longest record."""
REQUEST_HASHES_MAX = 1_024
REQUEST_OBJECTS_MAX = 65_536
CONNECTIONS_MAX = 128
"""How many connections from other processes a host serves at once; each is a thread. Half of them may wait for events to come."""
CONNECTIONS_KEPT_MAX = 8
"""How many connections to an owner elsewhere wait unused for the next call."""
HELLO_S = 5.0
"""How long whoever connects may take to say who they are."""
FRAME_S = 10.0
"""How long a frame may take from its first byte to its last."""
CONNECTION_IDLE_S = 10.0
"""A connection that nobody uses is closed by the owner, and its leases with it."""
LISTENER_STOP_S = 1.0
"""How long answers that are on their way have to go out when a host stops."""

BUSY_TIMEOUT_MS = 4_000
ASK_TIMEOUT_S = 30.0
TRANSACTION_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 10.0
