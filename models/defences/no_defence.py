"""No defence: cross entropy alone, the baseline of every table."""

from __future__ import annotations

from dataclasses import dataclass

from .training_rule import Defence, Setting, TrainingRule


@dataclass(frozen=True)
class NoDefence(Defence):
    """What every paper compares with."""

    def start(self, setting: Setting) -> TrainingRule:
        return TrainingRule()
