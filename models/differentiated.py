"""A torch classifier as something that can be asked: its answers, and gradients of log p at its embedding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, Unsupported

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]
Tokens = NDArray[np.int64]
NO_CLASS = -1
"""The answer where the logits hold NaN."""


class TorchClassifier:
    """`forward` takes token ids [n, length] to logits [n, classes] and looks them up in `embedding`.

    A `torch.nn.Module` is such a function; so is `lambda tokens: model(input_ids=tokens).logits`.
    """

    def __init__(
        self, forward: Callable[[torch.Tensor], torch.Tensor], embedding: torch.nn.Module, batch: int = 256
    ) -> None:
        import torch

        if not isinstance(embedding, torch.nn.Embedding):
            raise BadInput(f"the embedding is a {type(embedding).__name__}; a torch.nn.Embedding is needed")
        if embedding.training:
            raise BadInput("the module is in training mode, where answers are random: call .eval() first")
        self.forward, self.embedding, self.batch = forward, embedding, batch
        self.table = embedding.weight.detach().to("cpu", torch.float64).numpy()

    def rows(self, tokens: Tokens) -> Array:
        """[n, dimensions]: the embeddings."""
        return np.asarray(self.table[tokens])

    def logits(self, sentences: Tokens) -> Array:
        import torch

        with torch.no_grad():
            found = [
                self.checked(self.forward(tokens), tokens).to("cpu", torch.float64).numpy()
                for tokens in self.batches(sentences)
            ]
        return np.concatenate(found)

    def answers(self, sentences: Tokens) -> Array:
        """[n]: argmax, the lowest index winning ties; NO_CLASS for NaN."""
        if not len(sentences):
            return np.zeros(0, dtype=np.int64)
        logits = self.logits(sentences)
        return np.where(np.isnan(logits).any(axis=1), NO_CLASS, logits.argmax(axis=1))

    def gradients(self, sentences: Tokens, positions: Array, label: int) -> tuple[Array, Array]:
        """log p(label) [n], and its gradient [n, dimensions] at the embedding of positions[k] of sentences[k]."""
        import torch

        logs, gradients, start = [], [], 0
        for tokens in self.batches(sentences):
            here = torch.from_numpy(np.asarray(positions[start : start + len(tokens)], dtype=np.int64))
            start += len(tokens)
            logits, embedded = self.embedded(tokens)
            log = torch.log_softmax(logits, dim=1)[:, label]
            found = torch.stack(torch.autograd.grad(log.sum(), embedded)).sum(dim=0)
            logs.append(log.detach().to("cpu", torch.float64).numpy())
            gradients.append(found.to("cpu", torch.float64)[torch.arange(len(tokens)), here].numpy())
        return np.concatenate(logs), np.concatenate(gradients)

    def embedded(self, tokens: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The logits, and the embeddings [n, length, dimensions] that they were computed from."""
        import torch

        found: list[torch.Tensor] = []

        def kept(_: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
            turned = not torch.equal(inputs[0], tokens)
            if turned and not torch.equal(inputs[0], tokens.T):
                raise Unsupported("the embedding is asked about other token ids than those given: which word is which?")
            leaf = (output.transpose(0, 1) if turned else output).detach().requires_grad_()
            found.append(leaf)
            return leaf.transpose(0, 1) if turned else leaf

        handle = self.embedding.register_forward_hook(kept)
        try:
            logits = self.checked(self.forward(tokens), tokens)
        finally:
            handle.remove()
        if not found:
            raise BadInput("the classifier does not call this embedding: give the one that it looks words up in")
        if not logits.requires_grad:
            raise BadInput("the classifier's logits have no gradient at its embedding: leave out torch.no_grad()")
        return logits, found

    def checked(self, logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        import torch

        if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != len(tokens):
            what = list(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
            raise BadInput(
                f"the classifier answers {len(tokens)} sentences with {what}; logits [batch, classes] are needed"
            )
        return logits

    def batches(self, sentences: Tokens) -> list[torch.Tensor]:
        import torch

        device = self.embedding.weight.device
        return [
            torch.from_numpy(np.ascontiguousarray(sentences[first : first + self.batch], dtype=np.int64)).to(device)
            for first in range(0, len(sentences), self.batch)
        ]
