"""A table for people: fitted to a terminal, as wide as it needs elsewhere, and without colours there."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence

from freehold.cli.output import plain

_WIDE = 100_000


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    whole: str | None = None,
    style: Callable[[Sequence[str]], str] = lambda _row: "",
) -> str:
    """Return the rows below their headings. Cells are shown as they are: nothing in them is taken for markup.

    The column *whole*, or else the first, names the thing: on a terminal it is folded rather than cut. *style* says of a row
    how it is shown there.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Of a Text nothing is taken for markup, of a bare string it would be.
    terminal = sys.stdout.isatty()
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        cut = terminal and name != (whole or columns[0])
        grid.add_column(Text(name), justify="right" if name in right else "left", overflow="ellipsis" if cut else "fold", no_wrap=cut)
    for row in rows:
        grid.add_row(*(Text(plain(cell)) for cell in row), style=style(row))
    text = io.StringIO()
    width = shutil.get_terminal_size().columns if terminal else _WIDE
    Console(file=text, force_terminal=terminal, width=width).print(grid)
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())
