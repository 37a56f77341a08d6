"""What a supervisor starts, as frozen data that refuses to be wrong."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from freehold.actors import Actor, ChildSpec, Down, SupervisorSpec
from freehold.schema.errors import Refused


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"start": None},
        {"start": Actor()},
        {"restart": "always"},
        {"restart": None},
        {"shutdown": -1},
        {"shutdown": math.nan},
    ],
    ids=" ".join,
)
def test_a_wrong_child_spec_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        ChildSpec(**{"name": "a", "start": Actor, **wrong})

    assert raised.value.code == "bad_option"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"strategy": "all_for_one"},
        {"on_excess": "ignore"},
        {"max_restarts": -1},
        {"max_seconds": 0},
        {"max_seconds": -1},
        {"max_seconds": math.nan},
        {"children": [ChildSpec("a", Actor), ChildSpec("a", Actor)]},
    ],
    ids=" ".join,
)
def test_a_wrong_supervisor_spec_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        SupervisorSpec(**{"name": "tree", **wrong})

    assert raised.value.code == "bad_option"


@pytest.mark.parametrize("shutdown", [0, 0.5, math.inf])
@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
def test_every_restart_type_and_shutdown_time_can_be_had(restart: Any, shutdown: float) -> None:
    spec = ChildSpec("a", Actor, restart, shutdown)

    assert (spec.restart, spec.shutdown) == (restart, shutdown)


def test_the_defaults_are_otp_s_words() -> None:
    child, tree = ChildSpec("a", Actor), SupervisorSpec("tree")

    assert (child.restart, child.shutdown) == ("permanent", 5.0)
    assert (tree.strategy, tree.max_restarts, tree.max_seconds, tree.on_excess) == ("one_for_one", 3, 5.0, "escalate")


@pytest.mark.parametrize("thing", [ChildSpec("a", Actor), SupervisorSpec("tree"), Down("a", None, restarting=False)])
def test_specs_and_downs_are_frozen(thing: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(thing, next(iter(thing.__slots__)), "other")
