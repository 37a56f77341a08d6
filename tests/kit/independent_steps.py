"""Steps as docs/FORMAT.md tells of them, by its sections *Records* and *Steps* and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

from independent_values import depth, is_canonical, read, write

DIGEST = re.compile(r"[0-9a-f]{64}")
MEMBERS = "type message notes traceback details cause".split()


class Steps:
    """Take the events of steps in order; the rows of `intent` that follow from them stand in `intents`. Raises ValueError."""

    def __init__(self) -> None:
        self.intents: list[dict[str, Any]] = []
        self._last: dict[str, int] = {}
        self._open: dict[str, dict[str, Any]] = {}
        self._over: set[str] = set()

    def take(self, seq: int, place: list[Any], text: str) -> None:
        """Take the next one, with its columns from `name` to `attempt`."""
        name, execution, position, phase, attempt = place
        record = json.loads(text)
        last, intent = self._last.get(position, 0), self._open.get(position)
        ends_it = intent is not None and phase != 0 and attempt == last == intent["attempt"]
        _must(position == f"key/{name}" and execution is None and 1 <= len(name) <= 128 and position not in self._over)
        _must(attempt == last + 1 or ends_it)
        _must(record["input"] is None or DIGEST.fullmatch(record["input"]) is not None)
        self._last[position] = attempt
        if phase == 0:
            _must(list(record) == ["input", "policy", "key"] and write(read(text)) == text and intent is None)
            _must(record["policy"] in ("probe", "park") and re.fullmatch(r"[^\x00-\x1f\x7f]{1,255}", record["key"]) is not None)
            row = {"position": position, "attempt": attempt, "policy": record["policy"], "idempotency_key": record["key"]}
            self._open[position] = row | {"opened_seq": seq, "settled_seq": None, "state": "open"}
            self.intents.append(self._open[position])
            return
        _must(list(record) in (["input", "failure"], ["input", "result"]) and (phase == 2 or "failure" in record))
        begins = f'{{"input":{json.dumps(record["input"])},"{list(record)[1]}":'
        _must(text.startswith(begins) and text.endswith("}"))
        said = text[len(begins) : -1]
        _must(is_canonical(said))
        if "failure" in record:
            _must(len(said.encode()) <= 65_536 and _is_failure(read(said), 3))
        if phase == 2:
            self._over.add(position)
        if intent is not None:
            del self._open[position]
            known = {"state": "done" if phase == 2 else "not_done", "settled_seq": seq}
            intent |= known if ends_it else {"state": "unknown"}


def _is_failure(value: Any, levels: int) -> bool:
    if not isinstance(value, dict) or list(value) != MEMBERS or levels == 0 or depth(value) > 100:
        return False
    texts = [value["type"], value["message"], value["traceback"], *(value["notes"] if isinstance(value["notes"], list) else [None])]
    cause = value["cause"]
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(value["details"], dict)
        and (cause is None or _is_failure(cause, levels - 1))
    )


def _must(held: bool) -> None:
    if not held:
        raise ValueError("journal")
