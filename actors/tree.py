"""A picture of a supervision tree, taken from outside: it reads attributes only, so it works while an actor is stuck."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from freehold.actors.child import Child, State
from freehold.actors.supervision import SupervisorActor
from freehold.schema.wire import malformed


@dataclass(frozen=True, slots=True)
class Node:
    """One actor: what it is, where it stands, how much waits for it, what it is at."""

    name: str
    kind: str
    state: str
    waiting: int
    high_water: int
    restarts: int
    doing: str | None
    children: tuple[Node, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Yield every node with its depth, parents first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    def record(self) -> dict[str, Any]:
        """Return the picture as plain data."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Yield the picture as text, a line for each node."""
        for depth, node in self.walk():
            yield (
                f"{'  ' * depth}{node.name}  {node.state}"
                + (f"  {node.doing}" if node.doing else "")
                + (f"  {node.waiting} waiting" if node.waiting else "")
                + (f"  restarted {node.restarts} times" if node.restarts > 1 else "  restarted once" if node.restarts else "")
            )

    def __str__(self) -> str:
        return "\n".join(self.lines())


def node_of(record: dict[str, Any]) -> Node:
    """Return the picture that *record* is, which another process has made. Raises Refused (malformed_frame) if it is none."""
    try:
        return msgspec.convert(record, Node)
    except (msgspec.MsgspecError, RecursionError):  # its text quotes what it could not read
        raise malformed("what came is no picture of a tree") from None


def picture(supervisor: SupervisorActor) -> Node:
    """Return the present picture of *supervisor* and its children."""
    children = tuple(_child(child) for child in list(supervisor.children.values()))
    mailbox = supervisor.ref.mailbox
    return Node(supervisor.spec.name, "supervisor", supervisor.state, mailbox.waiting, mailbox.high_water, 0, None, children)


def _child(child: Child) -> Node:
    cell = child.cell
    actor = cell.actor if cell is not None else None
    kind = type(actor).__name__ if actor is not None else "actor"
    doing = actor.doing() if actor is not None else None
    mailbox = child.ref.mailbox
    # It takes messages before its supervisor has heard that it is ready: whom it has answered sees it running.
    state = State.RUNNING if child.state is State.STARTING and cell is not None and cell.ready else child.state
    return Node(child.spec.name, kind, str(state), mailbox.waiting, mailbox.high_water, child.restarts, doing)
