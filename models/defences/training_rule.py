"""What a defence may do while a network is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..architectures.network_shape import Body

if TYPE_CHECKING:
    import torch


class TrainingRule:
    """Rules in force while one network is trained; this one changes nothing."""

    remarks: tuple[str, ...] = ()

    def table(self, embedding: torch.Tensor) -> torch.Tensor:
        """The embedding table that the network reads, made from the one that is learned; the export holds it too."""
        return embedding

    def hold(self, weights: dict[str, torch.Tensor]) -> None:
        """Called before the first step and after every one: changes weights in place."""


@dataclass(frozen=True)
class Defence(ABC):
    """A method of `[defence]` in a recipe; its fields are the other keys of that section."""

    @property
    def synonym_file(self) -> str | None:
        """The table that it was made for, where there is one."""
        return None

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        """What must hold for the keys of this method, each with its complaint."""
        return ()

    @abstractmethod
    def start(self, body: Body, words: Sequence[str], folder: Path) -> TrainingRule:
        """The rule for a network of this architecture over these words; files are relative to `folder`."""
