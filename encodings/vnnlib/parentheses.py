"""Text in parentheses, as SMT-LIB and VNN-LIB write it: nested lists of words, each with the line it stands on."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import BadInput, OutOfTime

MOST_TOKENS = 20_000_000
"""More is no query that could be verified."""
DEEPEST = 200
BETWEEN_LOOKS = 10_000
"""Words read between two looks at the clock."""

TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\f]+|;[^\n]*)|(?P<newline>\n)|(?P<token>[()]|"[^"\n]*"|\[[^][()\n]*\]|[^\s()\[\];"]+)"""
)


@dataclass(frozen=True)
class Word:
    text: str
    line: int


@dataclass(frozen=True)
class Group:
    """What stands between two parentheses; `line` is that of the opening one."""

    parts: tuple[Word | Group, ...]
    line: int


Term = Word | Group


def tokens(text: str, source: str, until: float | None = None) -> Iterator[Word]:
    line, at, count = 1, 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise BadInput(f"{source} line {line}: {text[at : at + 20].splitlines()[0]!r} cannot be read")
        at = match.end()
        if match.lastgroup == "newline":
            line += 1
        elif match.lastgroup == "token":
            count += 1
            if count > MOST_TOKENS:
                raise BadInput(f"{source} line {line}: more than {MOST_TOKENS} words")
            if until is not None and count % BETWEEN_LOOKS == 0 and time.monotonic() > until:
                raise OutOfTime(f"{source} line {line}: not read in time")
            yield Word(match["token"], line)


def groups(text: str, source: str, until: float | None = None) -> Iterator[Group]:
    """The outermost groups, one after the other; OutOfTime when time.monotonic() has passed `until`."""
    open_groups: list[tuple[int, list[Term]]] = []
    for word in tokens(text, source, until):
        if word.text == "(":
            if len(open_groups) >= DEEPEST:
                raise BadInput(f"{source} line {word.line}: parentheses nested more than {DEEPEST} deep")
            open_groups.append((word.line, []))
        elif word.text == ")":
            if not open_groups:
                raise BadInput(f"{source} line {word.line}: a closing parenthesis without an opening one")
            line, parts = open_groups.pop()
            group = Group(tuple(parts), line)
            if open_groups:
                open_groups[-1][1].append(group)
            else:
                yield group
        elif open_groups:
            open_groups[-1][1].append(word)
        else:
            raise BadInput(f"{source} line {word.line}: {word.text!r} outside parentheses")
    if open_groups:
        raise BadInput(f"{source} line {open_groups[-1][0]}: a parenthesis that is never closed")
