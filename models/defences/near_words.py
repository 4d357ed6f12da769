"""Defences that swap words for their neighbours in a synonym table: the keys that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..architectures.network_shape import Body
from .synonym_pairs import neighbours_of
from .training_rule import Defence, Setting

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class NearWords(Defence):
    """The table, and how many neighbours of a word count."""

    synonyms: str
    max_per_word: int = 8

    @property
    def synonym_file(self) -> str:
        return self.synonyms

    def rules(self, body: Body) -> tuple[tuple[bool, str], ...]:
        return ((self.max_per_word >= 1, "max_per_word must be at least 1"),)

    def near(self, setting: Setting) -> torch.Tensor:
        """[words, neighbours]: indices, the word itself where there are fewer."""
        import torch

        return torch.from_numpy(neighbours_of(setting.words, setting.folder / self.synonyms, self.max_per_word))
