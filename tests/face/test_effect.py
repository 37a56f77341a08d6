"""An effect is the event of a publish as every later reader gets it, with its value and the changes."""

# mypy: disable-error-code="func-returns-value"
# A lambda that does several things is a tuple of what they return.
from __future__ import annotations

from pathlib import Path
from typing import Any

import freehold
from freehold import Effect, Event


def test_an_effect_is_its_event(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("a") as run:
        effect = run.publish("one", lambda files: (files.write_text("f", "1"), files.mkdir("d"), 7)[-1])
        read = next(run.history(reverse=True))

        assert isinstance(effect, Event)
        assert effect == read
        for name in ("seq", "id", "kind", "name", "data", "root", "hash", "time", "execution", "outcome"):
            assert getattr(effect, name) == getattr(read, name), name
        assert (effect.kind, effect.name, effect.data, effect.value) == ("publish", "one", {"changes": 2}, 7)
        assert [(change.path, change.kind) for change in effect.changes] == [("d", "added"), ("f", "added")]
        assert effect.changes == run.diff(effect.seq - 1, effect)


def test_an_effect_without_changes_is_an_event_with_the_old_root(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("a") as run:
        first = run.publish("one", lambda files: files.write_text("f", "1"))
        again: Effect[None] = run.publish("again", lambda files: files.write_text("f", "1"))
        with run.publish("block") as files:
            files.read_text("f")

        assert (again.root, list(again.changes), again.data) == (first.root, [], {"changes": 0})
        assert (files.effect.root, list(files.effect.changes), files.effect.value) == (first.root, [], None)
        assert run.info.events == 4
        run.verify()


def test_a_comparison_is_one_whether_it_takes_one_turn_or_many(tmp_path: Path) -> None:
    with freehold.open(tmp_path, timeout=20) as host, host.create("a") as run:
        first = run.publish("many", lambda files: [files.write_text(f"f{number:05}", "1") for number in range(3000)])
        few = run.publish("few", lambda files: files.write_text("f00007", "2"))
        many = run.publish("many", lambda files: [files.write_text(f"f{number:05}", "3") for number in range(0, 3000, 5)])

        asked: list[str] = []

        def about(work: Any) -> Any:
            return work(lambda message: (asked.append(type(message).__name__), run._ask(message))[-1])

        run._about = about  # type: ignore[method-assign]
        assert [change.path for change in run.diff(first, few)] == ["f00007"]
        assert "ReadObjects" not in asked
        assert run.diff(few, many) == many.changes
        assert "ReadObjects" in asked
        with freehold.view(run.path) as view:
            assert view.diff(few, many) == many.changes
            assert [change.path for change in view.diff(first, few)] == ["f00007"]
