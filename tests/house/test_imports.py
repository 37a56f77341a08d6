"""Imports point one way: schema <- storage <- actors <- the face."""

from __future__ import annotations

import pytest
from house import LAYERS, Source, layered


def uphill(source: Source) -> list[str]:
    """Return the imports of *source* that point to a layer above its own."""
    own = LAYERS.index(source.layer)
    return [f"{source}:{use.line} imports {use.name}" for use in source.imports if LAYERS.index(target(use.name) or "schema") > own]


def target(name: str) -> str | None:
    """Return the layer that an imported name belongs to, None for other people's."""
    parts = name.split(".")
    if parts[0] == "":
        return "freehold"
    if parts[0] != "freehold":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS[:-1] else "freehold"


@pytest.mark.parametrize("source", layered(), ids=str)
def test_imports_point_one_way(source: Source) -> None:
    assert uphill(source) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("schema/x.py", "import freehold.storage"),
        ("schema/x.py", "import freehold"),
        ("schema/x.py", "def f():\n    from freehold.actors.run import RunActor"),
        ("storage/vfs/x.py", "from freehold import actors"),
        ("storage/x.py", "from ..actors import run"),
        ("storage/x.py", "import importlib\nimportlib.import_module('freehold.cli')"),
        ("actors/x.py", "from freehold import Run"),
        ("actors/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from freehold.cli import main"),
    ],
)
def test_an_import_that_points_uphill_is_found(path: str, text: str) -> None:
    assert len(uphill(Source(path, text))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("schema/x.py", "import re\nfrom freehold.schema import ids"),
        ("storage/x.py", "from freehold.schema.errors import Refused\nfrom freehold.storage import faults"),
        ("src/freehold/__init__.py", "from freehold.actors.host import Host\nfrom freehold import schema"),
    ],
)
def test_an_import_that_points_downhill_is_not(path: str, text: str) -> None:
    assert uphill(Source(path, text)) == []
