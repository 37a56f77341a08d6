"""The repository as the house rules see it: files, their layer, their syntax trees and the names they use."""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("schema", "storage", "actors", "freehold")
"""From the ground up. A layer may import itself and what stands before it."""

_GENERATED = re.compile(r"(^|/)(\.venv|__pycache__|[^/]+\.egg-info|\.[a-z]+_cache|\.hypothesis|build|dist)/")

OTHERS = ("tests", "examples", "benchmarks")


@dataclass(frozen=True)
class Use:
    """A name that a file uses, spelled out from its imports: `t.time` after `import time as t` is `time.time`."""

    name: str
    line: int
    is_module: bool = False


@dataclass(frozen=True)
class Source:
    """One Python file: where it stands in the repository, and its text."""

    path: str
    text: str

    def __str__(self) -> str:
        return self.path

    @property
    def layer(self) -> str:
        """The layer that the file belongs to, or the name of another top-level folder."""
        top = self.path.split("/", 1)[0]
        return "freehold" if top == "src" else top

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @cached_property
    def imports(self) -> tuple[Use, ...]:
        """Every module or name that is imported, wherever the import stands, `import_module("…")` included."""
        return tuple(_imports(self.tree))

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Every imported name and every attribute reached through one."""
        return (*self.imports, *_attributes(self.tree, _bindings(self.tree)))

    @cached_property
    def strings(self) -> tuple[tuple[str, int], ...]:
        """Every string literal and its line; docstrings are prose and are left out."""
        prose = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Expr)}
        return tuple(
            (node.value, node.lineno)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        )

    @cached_property
    def identifiers(self) -> tuple[tuple[str, int], ...]:
        """Every bare name, attribute and imported name, and its line."""
        found: list[tuple[str, int]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.append((node.id, node.lineno))
            elif isinstance(node, ast.Attribute):
                found.append((node.attr, node.lineno))
            elif isinstance(node, ast.ImportFrom):
                found.extend((alias.name, node.lineno) for alias in node.names)
        return tuple(found)


def stands_in(path: str, places: frozenset[str]) -> bool:
    """Return whether *path* is one of *places*; a place that ends in a slash is everything below it."""
    return any(path.startswith(place) if place.endswith("/") else path == place for place in places)


@cache
def layered() -> tuple[Source, ...]:
    """Return the sources of the three folders and of the face, each once, by its real path."""
    return _read("schema", "storage", "actors", "src")


@cache
def everything() -> tuple[Source, ...]:
    """Return every Python file of the project."""
    return (*layered(), *_read(*OTHERS))


@cache
def shipped() -> tuple[Source, ...]:
    """Return every Python file that is not a test."""
    return tuple(source for source in everything() if source.layer != "tests")


@cache
def proofs() -> tuple[Source, ...]:
    """Return every file below tests/."""
    return _read("tests")


@cache
def tracked() -> tuple[str, ...]:
    """Return every file of the project that git knows or would take; without git, every file that nobody generated."""
    if (ROOT / ".git").exists():
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    else:
        listed = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
        listed = [name for name in listed if not _GENERATED.search(name)]
    return tuple(sorted(name for name in listed if name and (ROOT / name).is_file()))


def _read(*tops: str) -> tuple[Source, ...]:
    # rglob does not go through the links in src/freehold/, so that each file is seen once.
    files = (file for top in tops for file in sorted((ROOT / top).rglob("*.py")))
    return tuple(Source(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files)


def _imports(tree: ast.Module) -> Iterator[Use]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (Use(alias.name, node.lineno, is_module=True) for alias in names)
            case ast.ImportFrom(module=module, names=names):
                # A relative import has no name from the top; "." makes it fail every rule about where it points.
                base = "." * node.level + (module or "")
                yield from (Use(f"{base}.{alias.name}", node.lineno) for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module" | "__import__") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Use(name, node.lineno, is_module=True)


def _bindings(tree: ast.Module) -> dict[str, str]:
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            case ast.ImportFrom(module=str(module), names=names):
                bound |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
    return bound


def _attributes(tree: ast.Module, bound: dict[str, str]) -> Iterator[Use]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _spelled_out(node, bound)) is not None:
            yield Use(name, node.lineno)


def _spelled_out(node: ast.expr, bound: dict[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return bound.get(name)
        case ast.Attribute(value=value, attr=attr):
            base = _spelled_out(value, bound)
            return None if base is None else f"{base}.{attr}"
    return None
