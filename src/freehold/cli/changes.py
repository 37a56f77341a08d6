"""Changes of files as people and machines read them, and what a command says that has made some."""

from __future__ import annotations

from typing import Any

from freehold.cli.events import event_record
from freehold.cli.exits import DONE, NOT_WHOLE
from freehold.cli.options import Settings
from freehold.cli.output import coloured, note, plain, say, say_json
from freehold.effect import Effect
from freehold.schema.changes import Change, ChangeKind
from freehold.schema.skipped import Skipped

_LETTERS: dict[ChangeKind, tuple[str, str]] = {
    "added": ("A", "green"),
    "changed": ("M", "yellow"),
    "removed": ("D", "red"),
    "renamed": ("R", "cyan"),
    "mode": ("T", "magenta"),
}
"""The letter of each kind of change, as git has them, and its colour."""


def change_line(change: Change) -> str:
    """Return a change as a line: its letter and its path, or both paths."""
    letter, colour = _LETTERS[change.kind]
    # No path has a `>` in it, so the arrow is always the one between two of them.
    paths = f"{change.before} -> {change.after}" if change.kind == "renamed" else change.path
    return coloured(f"{letter}  {plain(paths)}", colour) + "\n"


def change_record(change: Change) -> dict[str, Any]:
    """Return a change as plain data."""
    return {"path": change.path, "kind": change.kind, "before": change.before, "after": change.after}


def say_effect(settings: Settings, run: str, effect: Effect[Any]) -> int:
    """Say what a publish has done: its changes, what an import could not take, and as a document its event too. Return the exit code."""
    code = DONE if effect.complete else NOT_WHOLE
    if settings.json:
        changes = [change_record(change) for change in effect.changes]
        skipped = [_skipped_record(path) for path in effect.skipped]
        say_json({"run": run, "event": event_record(effect), "changes": changes, "skipped": skipped, "exit_code": code})
        return code
    for change in effect.changes:
        say(change_line(change))
    for path in effect.skipped:
        note(f"not taken{' whole' if path.held else ''}: {path.path}: {path.reason}{f' ({path.detail})' if path.detail else ''}")
    if not effect.changes:
        note("nothing is different now")
    return code


def _skipped_record(path: Skipped) -> dict[str, Any]:
    return {"path": path.path, "reason": path.reason, "detail": path.detail, "held": path.held}
