"""Publishing: file changes, the root they lead to and the event that names it, in one turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import CO_ITERABLE_COROUTINE
from types import CoroutineType, GeneratorType
from typing import Any, TypeVar

from freehold.draft import Ask, Draft, record_of, record_of_failure
from freehold.effect import Effect
from freehold.files import Files
from freehold.reply import keep
from freehold.schema.errors import PathRefused, Refused
from freehold.schema.foreign import is_a
from freehold.schema.messages import OpenSavepoint, Publish, ReleaseSavepoint, UndoSavepoint
from freehold.schema.secrets import SecretFilter
from freehold.storage.folder import Kept

T = TypeVar("T")


class FailedPublish:
    """The answer to a publish that ended with a file error: nothing was changed, and that is recorded."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def publish(
    ask: Ask, name: str, work: Callable[[Files], T], secrets: SecretFilter, shelf: Kept, home: str, *, with_reply: bool
) -> tuple[Effect[T] | FailedPublish, str | None]:
    """Let *work* change the files, inside an open transaction, and publish what became of them; return the effect and its text.

    A file error of ours that it lets out undoes its changes and is recorded. Raises whatever else it raises.
    """
    point = ask(OpenSavepoint())
    draft = Draft(ask, shelf, home)
    try:
        value = work(Files(draft.desk, secrets))
        refuse_awaitable(value)
        root, changed = draft.sealed()
        rest = draft.pieces.rest()
    except (OSError, PathRefused) as error:
        if not draft.desk.knows(error):
            raise
        ask(UndoSavepoint(point))
        ask(Publish(name, record_of_failure(error, secrets)))
        return FailedPublish(error), None
    finally:
        draft.end()
    ask(ReleaseSavepoint(point))
    written = ask(Publish(name, record_of(changed, draft.desk.skipped, secrets), None if root is None else root.data, rest))
    effect = Effect(written, value, changed, draft.desk.skipped)
    if not with_reply:
        return effect, None
    (_, effect.value), reply = keep((effect, value), secrets, ask)
    return effect, reply


def refuse_awaitable(value: object, whose: str = "a transaction cannot wait: its work") -> None:
    """Raise Refused (awaitable_refused) for what would have to be awaited: the owner, or the step, cannot wait for it."""
    if _is_awaitable(value):
        if isinstance(value, CoroutineType):
            value.close()
        raise Refused(f"{whose} returned an awaitable; nothing was kept", code="awaitable_refused")


def _is_awaitable(value: Any) -> bool:
    # As `inspect.isawaitable` says it, but of its class: the value itself may refuse to be asked.
    return is_a(value, Awaitable) or (is_a(value, GeneratorType) and bool(value.gi_code.co_flags & CO_ITERABLE_COROUTINE))
