"""Whose *turn* it is. The only user of pykka, of thread creation, of waiting and of timeouts."""

from freehold.actors.actor import Actor
from freehold.actors.ref import ActorRef
from freehold.actors.spec import ChildSpec, Down, SupervisorSpec
from freehold.actors.supervisor import Supervisor
from freehold.actors.tree import Node

__all__ = ["Actor", "ActorRef", "ChildSpec", "Down", "Node", "Supervisor", "SupervisorSpec"]
