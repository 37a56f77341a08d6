"""Actors of your own under Freehold's supervisor: one crashes, is started anew, and the other never notices.

An actor is sequential code with a mailbox: no locks, no threads, one message at a time. What it crashes on is the answer
to whoever asked; what becomes of it then is the supervisor's business, by the words of its child spec.
"""

from __future__ import annotations

from freehold.actors import Actor, ActorRef, ChildSpec, Down, Supervisor, SupervisorSpec


class Counter(Actor[str]):
    """Counts words. It cannot count nothing."""

    def started(self) -> None:
        """Begin to count; each incarnation does so from zero."""
        self.words = 0

    def receive(self, message: str) -> int:
        """Return how many words there have been so far."""
        if not message:
            raise ValueError("there is nothing to count")
        self.words += len(message.split())
        return self.words


class Watcher(Actor[Down | str]):
    """Is told when another actor is down, and keeps what it heard."""

    def started(self) -> None:
        """Begin with nothing heard."""
        self.heard: list[Down] = []

    def receive(self, message: Down | str) -> list[Down] | None:
        """Note a Down; answer anything else with what was noted."""
        if not isinstance(message, Down):
            return self.heard
        self.heard.append(message)
        return None


SPEC = SupervisorSpec("desk", [ChildSpec("watcher", Watcher), ChildSpec("counter", Counter)], max_restarts=3, max_seconds=5.0)


def main() -> None:
    """Crash a counter, and go on with it."""
    with Supervisor(SPEC) as tree:
        counter: ActorRef[str] = tree["counter"]
        tree.monitor("counter", tree["watcher"])
        print("words so far:", counter.ask("one two three"))
        try:
            counter.ask("")
        except ValueError as error:
            print("the crash came back to the asker:", error)
        # The same ref reaches the next incarnation: what is sent in between waits until that one is ready.
        print("words so far:", counter.ask("four"))
        for down in tree["watcher"].ask("what have you heard?"):
            print(f"{down.child} was down: {type(down.reason).__name__}, restarting: {down.restarting}")
        print(tree.tree())


if __name__ == "__main__":
    main()
