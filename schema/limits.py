"""A number on everything that can grow. Units last in the name."""

RUN_ID_CHARS_MAX = 128
NAME_CHARS_MAX = 256
REQUEST_ID_CHARS_MAX = 128
PROJECT_CHARS_MAX = 256
STOP_CODE_CHARS_MAX = 64

VALUE_DEPTH_MAX = 100
VALUE_BYTES_MAX = 16 * 1024 * 1024
OBJECT_BYTES_MAX = 2 * VALUE_BYTES_MAX
"""More than any object of this version takes; a forged row must not make us allocate more."""
PROPS_BYTES_MAX = 64 * 1024
REPLY_BYTES_MAX = 64 * 1024
RECORD_INLINE_BYTES_MAX = 4 * 1024
"""A longer record becomes an object of its own, so that a scan of the journal stays cheap."""

REQUEST_KEEP_S = 30 * 24 * 3600
"""How long a reply is kept. Its row stays for ever: the request is never run again."""

MAILBOX_MESSAGES_MAX = 10_000
MAILBOX_BYTES_MAX = 256 * 1024 * 1024
BATCH_TURNS_MAX = 256
BATCH_BYTES_MAX = 4 * 1024 * 1024
BATCH_SECONDS_MAX = 0.025
HISTORY_PAGE_EVENTS = 500
HISTORY_PAGE_BYTES = 4 * 1024 * 1024

CHECKPOINT_PAGES = 1_000
IDLE_CHECKPOINT_S = 1.0
FOREIGN_KEYS_WHOLE_BYTES = 4 * 1024 * 1024
"""Up to this file size `foreign_key_check` runs whole at open; above it only the frontier is checked."""

OPENER_WAIT_S = 0.25
"""How long an opener waits for a reader's shared lock before it says that the run is owned elsewhere."""

BUSY_TIMEOUT_MS = 4_000
ASK_TIMEOUT_S = 30.0
TRANSACTION_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 10.0
