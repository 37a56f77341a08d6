"""The files of a root, read and held to every rule of docs/FORMAT.md, *The workspace*, without a line of Freehold.

Whether a tree is cut as it must be is found out by writing it again with the second writer: equal entries, equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import independent_content
import independent_tree
from independent_hashes import tree_of

Get = Callable[[str, bytes], bytes]
"""Returns the content of the object of a kind and hash, or raises KeyError."""
Files = dict[str, tuple[str, int, bytes]]
"""By path: kind, permissions, and the content of a file or the target of a link."""


def read_root(root: bytes, get: Get) -> Files:
    """Return what stands in the root of this content. Raises ValueError for what breaks a rule, KeyError for what is missing."""
    found: Files = {}
    entries = _directory(tree_of(root), "", get, found)
    *_, held, size, depth, profile = _unpack(root)
    if (held, size, depth) != independent_tree.held(entries) or profile != 0:
        raise ValueError("root")
    return found


def _directory(tree: bytes, above: str, get: Get, found: Files) -> list[Any]:
    entries = list(_entries(get("tree", tree), get))
    for entry in entries:
        kind, name, *rest = entry
        path = above + name
        if len(path.encode()) > 4096 or path.count("/") > 255:
            raise ValueError("tree")
        if kind == 1:
            mode, inner, *totals = rest
            found[path] = ("directory", mode, b"")
            if tuple(totals) != independent_tree.held(_directory(inner, f"{path}/", get, found)):
                raise ValueError("tree")
        elif kind == 0:
            mode, size, where = rest
            content = _content(size, where, get)
            if len(content) != size or independent_content.where(content) != where:
                raise ValueError("content")
            found[path] = ("file", mode, content)
        else:
            found[path] = ("link", 0o777, rest[0].encode())
    if independent_tree.tree(entries, lambda _hash, _raw: None) != tree:
        raise ValueError("tree")
    return entries


def _entries(node: bytes, get: Get) -> list[Any]:
    level, items = _unpack(node)
    return items if level == 0 else [entry for item in items for entry in _entries(get("tree", item[1]), get)]


def _content(size: int, where: bytes, get: Get) -> bytes:
    if size <= 128:
        return where
    if size <= 65536:
        return get("chunk", where)
    level, held, children = _unpack(get("file", where))
    if held != size:
        raise ValueError("content")
    span = 65536 * 128**level
    sizes = [min(span, size - at) for at in range(0, size, span)]
    return b"".join(get("chunk", child) if level == 0 else _content(part, child, get) for child, part in zip(children, sizes, strict=True))


def _unpack(raw: bytes) -> Any:
    value, end = _value(raw, 0)
    if end != len(raw) or independent_tree.pack(value) != raw:
        raise ValueError("MessagePack")
    return value


def _value(raw: bytes, at: int) -> tuple[Any, int]:
    mark = raw[at]
    if mark < 0x80:
        return mark, at + 1
    if mark in (0xCC, 0xCD, 0xCE, 0xCF):
        end = at + 1 + 2 ** (mark - 0xCC)
        return int.from_bytes(raw[at + 1 : end], "big"), end
    lengths = {0xC4: 1, 0xC5: 2, 0xD9: 1, 0xDA: 2, 0xDC: 2}
    if mark not in lengths and not 0x90 <= mark < 0xC0:
        raise ValueError("MessagePack")
    head = at + 1 + lengths.get(mark, 0)
    count = int.from_bytes(raw[at + 1 : head], "big") if mark in lengths else mark & (0x0F if mark < 0xA0 else 0x1F)
    if mark in (0xC4, 0xC5):
        return raw[head : head + count], head + count
    if mark in (0xD9, 0xDA) or 0xA0 <= mark < 0xC0:
        return raw[head : head + count].decode(), head + count
    items = []
    for _ in range(count):
        item, head = _value(raw, head)
        items.append(item)
    return items, head
