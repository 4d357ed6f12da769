"""Gradients of an ONNX model at its embedding by torch, which computes the same graph."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported

from ..subject import Subject
from .euba_classifier import Tokens, log_probability
from .gradient_differences import TOLERANCE, ByDifferences
from .torch_graph import TorchGraph

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]

TOGETHER = 64
"""Sentences of a batch; of more, torch keeps too much for the way back."""


@dataclass(frozen=True, eq=False)
class ByAutograd:
    """Differentiable. `plain` answers, and its rows under the table are what is differentiated at."""

    plain: ByDifferences
    graph: TorchGraph

    sentences_per_gradient = 3
    """One on the way there, about two on the way back."""

    @classmethod
    def of(cls, plain: ByDifferences, subject: Subject) -> ByAutograd:
        """Refuses a model that torch does not compute for us, or not as onnxruntime does."""
        if find_spec("torch") is None:
            raise Unsupported("torch is not installed")
        found = cls(plain, TorchGraph.of(plain.embedded.proto))
        sentence, rows = np.array([subject.tokens], dtype=np.int64), np.zeros((0, plain.dimensions))
        try:
            here = found.logits(sentence, rows)[0].detach().numpy()
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            raise Unsupported(f"torch fails on the graph ({str(error).splitlines()[0]})") from error
        there = plain.embedded.logits(sentence, rows)
        if here.shape != there.shape or not (np.abs(here - there) <= TOLERANCE * (1.0 + np.abs(there).max())).all():
            raise Unsupported("torch computes other logits than onnxruntime")
        return found

    def rows(self, tokens: Tokens) -> Array:
        return self.plain.rows(tokens)

    def answers(self, sentences: Tokens) -> Array:
        return self.plain.answers(sentences)

    def gradients(self, sentences: Tokens, positions: Array, label: int) -> tuple[Array, Array]:
        together = TOGETHER if self.plain.embedded.model.batch is None else 1
        parts = [slice(first, first + together) for first in range(0, len(sentences), together)]
        found = [self.together(sentences[part], positions[part], label) for part in parts]
        logs, gradients = (np.concatenate(column) for column in zip(*found, strict=True))
        return logs, gradients

    def together(self, sentences: Tokens, positions: Array, label: int) -> tuple[Array, Array]:
        import torch

        places = np.arange(len(sentences))
        moved = sentences.copy()
        rows = self.rows(sentences[places, positions])
        moved[places, positions] = self.plain.embedded.size + places
        logits, leaves = self.logits(moved, rows)
        log = torch.log_softmax(logits, dim=1)[:, label].sum()
        found = torch.autograd.grad(log, leaves, allow_unused=True, materialize_grads=True)
        gradients = np.concatenate([part.numpy().astype(np.float64) for part in found], axis=1)
        return log_probability(logits.detach().numpy().astype(np.float64), label), gradients

    def logits(self, sentences: Tokens, rows: Array) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """And the rows of each table, as what they are differentiated by."""
        import torch

        embedded, leaves, start = self.plain.embedded, [], 0
        given = {embedded.model.input: torch.from_numpy(sentences.astype(embedded.model.input_type)).long()}
        for name, table in zip(embedded.inputs, embedded.tables, strict=True):
            stop = start + table.shape[1]
            leaves.append(torch.from_numpy(rows[:, start:stop].astype(table.dtype)).requires_grad_())
            given[name], start = leaves[-1], stop
        return self.graph(given), leaves

    def accuracy(self, subject: Subject, token: int) -> str:
        return "by torch, which computes the same graph"
