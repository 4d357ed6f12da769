"""What reading vocabularies, data and models refuses, each error also being the built-in error it really is.

    Unsupported  (NotImplementedError)  the input is well formed, and beyond what is implemented or installed
    BadInput     (ValueError)           the input is not what it should be
        EmptyText                       a text without any word
        BrokenRows                      rows of a data file that cannot be used: `lines`, one for each
    Disagreement (ArithmeticError)      an exported model answers otherwise than the one it was made from

A message says what was met, where, and what would work.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike


class Unsupported(NotImplementedError):
    """Well formed, and beyond what is implemented or installed."""


class BadInput(ValueError):
    """Not what it should be."""


class Disagreement(ArithmeticError):
    """An exported model answers otherwise than the one it was made from, by more than rounding."""


class EmptyText(BadInput):
    """A text without any word: whoever knows which text it was puts its number in front."""


class BrokenRows(BadInput):
    """Rows that cannot be used, the first of them, one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(visible(line) for line in lines)
        super().__init__("\n".join(self.lines))


def unreadable(path: str | PathLike[str], error: OSError) -> BadInput:
    """The one-line form of an operating system's refusal to read a file."""
    if isinstance(error, FileNotFoundError):
        return BadInput(f"{path}: no such file")
    if isinstance(error, IsADirectoryError):
        return BadInput(f"{path}: a directory, where a file is needed")
    return BadInput(f"{path}: cannot be read ({error.strerror or error})")


def visible(text: str) -> str:
    """With an escape for every character that does not show: line ends, tabs, what has no width, halves of pairs."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(error: BaseException) -> str:
    """Another library's message without its line breaks, and without Python's advice to programmers; none where it
    cannot say it."""
    try:
        return " ".join(str(error).partition("; use sys.set_int_max_str_digits()")[0].split())
    except Exception:  # raised by code that nobody here knows
        return ""
