"""A picture of a tree can be taken at any time, also while an actor is stuck."""

from __future__ import annotations

import json

import pytest
from troupe import PATIENCE_S, Diary, Doer, Hold, aside, boom, doers, ended, tree_of, until

from freehold import Refused
from freehold.actors import ChildSpec, Node, Supervisor, SupervisorSpec
from freehold.actors.tree import node_of


def test_a_picture_can_be_taken_while_an_actor_is_stuck() -> None:
    class Known(Doer):
        def doing(self) -> str:
            return "something long"

    with Supervisor(SupervisorSpec("tree", [ChildSpec("a", Known), *doers("b", diary=Diary())])) as tree:
        hold = Hold()
        tree["a"].tell(hold)
        assert hold.begun.wait(PATIENCE_S)
        tree["a"].tell(lambda _actor: None)
        picture = tree.tree()
        hold.release.set()

    assert picture == Node(
        "tree",
        "supervisor",
        "running",
        0,
        picture.high_water,
        0,
        None,
        (Node("a", "Known", "running", 1, 1, 0, "something long"), Node("b", "Doer", "running", 0, 0, 0, None)),
    )
    assert str(picture) == "tree  running\n  a  running  something long  1 waiting\n  b  running"


def test_a_picture_shows_restarts() -> None:
    with tree_of("a") as tree:
        with pytest.raises(ZeroDivisionError):
            tree["a"].ask(boom)
        tree["a"].ask(lambda _actor: None)

        assert tree.tree().children[0].restarts == 1
        assert str(tree.tree()).splitlines()[1] == "  a  running  restarted once"


def test_a_picture_of_a_tree_that_has_ended_is_still_there() -> None:
    tree = tree_of("a", max_restarts=0)
    with pytest.raises(ZeroDivisionError):
        tree["a"].ask(boom)
    ended(tree)

    assert [(depth, node.name, node.state) for depth, node in tree.tree().walk()] == [(0, "tree", "escalated"), (1, "a", "stopped")]


def test_a_picture_is_plain_data() -> None:
    with tree_of("a", "b") as tree:
        record = tree.tree().record()

    assert json.loads(json.dumps(record))["children"][1]["name"] == "b"


def test_no_picture_shows_a_message() -> None:
    with tree_of("a") as tree:
        hold = Hold()
        tree["a"].tell(hold)
        assert hold.begun.wait(PATIENCE_S)
        tree["a"].tell("a stored value")
        picture = tree.tree()
        tree["a"].mailbox.take(1, 1)
        hold.release.set()

    assert "a stored value" not in f"{picture} {picture!r} {picture.record()}"


def test_whoever_an_actor_has_answered_sees_it_running_before_its_supervisor_has_heard_of_it() -> None:
    held = Hold()

    class Slow(Doer):
        def started(self) -> None:
            assert held.begun.wait(PATIENCE_S)

    def start_held_up() -> Doer:
        held(Doer())
        return Doer()

    with Supervisor(SupervisorSpec("tree", [])) as tree:
        starters = [aside(lambda: tree.start_child(ChildSpec("slow", Slow)))]
        until(lambda: tree.children() == ["slow"])
        starters.append(aside(lambda: tree.start_child(ChildSpec("held", start_held_up))))
        assert held.begun.wait(PATIENCE_S)
        tree["slow"].ask(lambda _actor: None)
        picture = str(tree.tree())
        held.release.set()
        assert [starter() for starter in starters] == [tree["slow"], tree["held"]]

    assert picture.splitlines()[:2] == ["tree  running", "  slow  running"]


def test_a_picture_of_another_process_is_the_same_and_what_is_none_is_refused() -> None:
    with tree_of("a", "b") as tree:
        picture = tree.tree()

    assert node_of(json.loads(json.dumps(picture.record()))) == picture
    for wrong in ({}, picture.record() | {"name": 5}, picture.record() | {"children": [{"name": "hunter2"}]}):
        with pytest.raises(Refused) as caught:
            node_of(wrong)
        assert caught.value.code == "malformed_frame"
        assert "hunter2" not in str(caught.value)
