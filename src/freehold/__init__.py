"""A workflow run in one SQLite file with exactly one owner.

>>> import freehold, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     with freehold.open(folder) as host, host.create("first") as run:
...         event = run.append("greeting", {"text": "hello"})
...         event.seq, event.data
(2, {'text': 'hello'})
"""

from freehold.actors.deadline import fail_after
from freehold.actors.tree import Node as Tree
from freehold.checkout import Checkout
from freehold.current import StepInfo, current_step
from freehold.effect import Effect
from freehold.errors import (
    Conflict,
    Crashed,
    Damaged,
    DeadlineExceeded,
    Error,
    Holder,
    HostOpen,
    InsideTransaction,
    LeaseClosed,
    LeaseLost,
    MailboxFull,
    NotCompleted,
    OwnedElsewhere,
    PathRefused,
    Quarantined,
    Refused,
    RequestExpired,
    RunEnded,
    RunExists,
    RunNotFound,
    StorageFailed,
    Unavailable,
    UnsupportedPlatform,
    ValueRefused,
)
from freehold.event import Event
from freehold.files import Files, ReadFiles
from freehold.handle import Handle
from freehold.host import Host, open  # noqa: A004 - the field's own word, as in pathlib
from freehold.hosts import LivingHost
from freehold.info import RunInfo, Status
from freehold.once import Done
from freehold.position import At
from freehold.run import Run
from freehold.schema.changes import Change
from freehold.schema.ids import EventId, Root
from freehold.schema.values import Value
from freehold.staged import Staged
from freehold.transaction import Transaction
from freehold.view import RunView, view

__version__ = "0.1.0"

__all__ = [
    "At",
    "Change",
    "Checkout",
    "Conflict",
    "Crashed",
    "Damaged",
    "DeadlineExceeded",
    "Done",
    "Effect",
    "Error",
    "Event",
    "EventId",
    "Files",
    "Handle",
    "Holder",
    "Host",
    "HostOpen",
    "InsideTransaction",
    "LeaseClosed",
    "LeaseLost",
    "LivingHost",
    "MailboxFull",
    "NotCompleted",
    "OwnedElsewhere",
    "PathRefused",
    "Quarantined",
    "ReadFiles",
    "Refused",
    "RequestExpired",
    "Root",
    "Run",
    "RunEnded",
    "RunExists",
    "RunInfo",
    "RunNotFound",
    "RunView",
    "Staged",
    "Status",
    "StepInfo",
    "StorageFailed",
    "Transaction",
    "Tree",
    "Unavailable",
    "UnsupportedPlatform",
    "Value",
    "ValueRefused",
    "current_step",
    "fail_after",
    "open",
    "view",
]
