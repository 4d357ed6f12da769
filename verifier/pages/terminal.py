"""The terminal that tables are drawn on; a closed pipe is not taken for a violated property."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS_UNSEEN = 120
"""Width of the tables when nobody's terminal tells one."""


def terminal() -> Console:
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Rich would exit with code 1, which means violated; the command line has a code for it."""
            raise BrokenPipeError(errno.EPIPE, "nobody reads the output")

    return Terminal(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else COLUMNS_UNSEEN)
