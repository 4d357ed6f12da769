"""What was found, said on the terminal one topic at a time, in lines that stand below each other."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import dataclass, field
from typing import Any

from swapproof.models.errors import visible

MARGIN = 10
WIDEST = 110


@dataclass
class Findings:
    """Printed as they come: of a task that cannot be written, people see how far it went."""

    said: list[tuple[str, str]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """What could not be told, or looks wrong: said again at the end."""

    def tell(self, topic: str, sentence: str) -> None:
        first = not self.said or self.said[-1][0] != topic
        self.said.append((topic, sentence))
        hang(topic.ljust(MARGIN) if first else " " * MARGIN, sentence)

    def show(self, block: str) -> None:
        """Lines as they are, a table for instance."""
        print(textwrap.indent(block, " " * MARGIN))
        sys.stdout.flush()

    def point(self, sentence: str) -> None:
        hang("  * ", sentence)

    def doubt(self, sentence: str) -> None:
        self.doubts.append(sentence)


def hang(head: str, sentence: str) -> None:
    """Lines that begin below each other, to the right of a head."""
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    lines = textwrap.wrap(visible(sentence), max(40, width - len(head)), **options) or [""]
    print("\n".join([head + lines[0], *(" " * len(head) + line for line in lines[1:])]))
    sys.stdout.flush()
