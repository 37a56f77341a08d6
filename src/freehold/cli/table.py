"""A table for people: fitted to a terminal, as wide as it needs elsewhere, and without colours there."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Sequence

from freehold.cli.output import plain

_WIDE = 100_000


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """Return the rows below their headings. Cells are shown as they are: nothing in them is taken for markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Of a Text nothing is taken for markup, of a bare string it would be.
    terminal = sys.stdout.isatty()
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        # The first column names the thing: it is folded rather than cut.
        cut = terminal and name != columns[0]
        grid.add_column(Text(name), justify="right" if name in right else "left", overflow="ellipsis" if cut else "fold", no_wrap=cut)
    for row in rows:
        grid.add_row(*(Text(plain(cell)) for cell in row))
    text = io.StringIO()
    width = shutil.get_terminal_size().columns if terminal else _WIDE
    Console(file=text, force_terminal=terminal, width=width).print(grid)
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())
