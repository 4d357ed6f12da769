"""Perplexity of sentences by a causal language model that lies in a local folder."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported
from .opening_errors import why

LONGEST = 512
"""Pieces, where the model does not say how many it reads."""
ALIKE = 1e-6
"""Logits that differ by rounding only, as a share of the largest."""


@dataclass(frozen=True, eq=False)
class CausalModel:
    """perplexity(x) = exp(-1/(n - 1) sum over i > 1 of log p(x_i | x_1 ... x_{i-1})), n pieces, cut at what is read.

    The piece that begins a text stands first where the tokenizer has one; a single piece has no perplexity (NaN).
    """

    tokenizer: Any
    model: Any
    longest: int
    name: str
    """The folder's, and of its weights the SHA-256."""

    @classmethod
    def open(cls, folder: Path) -> CausalModel:
        missing = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
        if missing:
            raise Unsupported(f"perplexity needs {', '.join(missing)}: pip install {' '.join(missing)}")
        if not (folder / "config.json").is_file():
            raise BadInput(
                f"{folder}: no config.json; give a folder with a causal language model and its tokenizer; none is "
                "downloaded"
            )
        from transformers import AutoModelForCausalLM, AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
            model.eval()  # type: ignore[no-untyped-call,unused-ignore]
            causal = is_causal(model)
        except Exception as error:  # transformers raises whatever its parts raise
            raise BadInput(
                f"{folder}: not a causal language model that transformers opens ({why(folder, error)})"
            ) from None
        if not causal:
            raise BadInput(
                f"{folder}: its model ({model.config.model_type}) sees the words that come later, as masked language "
                "models do; give a causal one, such as a GPT-2"
            )
        longest = getattr(model.config, "max_position_embeddings", None) or LONGEST
        return cls(tokenizer, model, int(longest), f"{folder.name} (sha256 {weights_of(folder)[:12]})")

    def perplexities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([self.perplexity(text) for text in texts], dtype=np.float64)

    def perplexity(self, text: str) -> float:
        """One by one: padding would have to be masked, and how models count positions beside it differs."""
        import torch

        pieces = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        first = self.tokenizer.bos_token_id
        pieces = ([] if first is None else [first]) + list(pieces)
        pieces = pieces[: self.longest]
        if len(pieces) < 2:
            return float("nan")
        ids = torch.tensor([pieces])
        with torch.inference_mode():
            logits = self.model(input_ids=ids).logits[0, :-1].double()
        surprise = torch.nn.functional.cross_entropy(logits, ids[0, 1:])
        return float(torch.exp(surprise))


def is_causal(model: Any) -> bool:
    """Whether what it expects after the first piece is the same whatever the second one is.

    transformers opens a masked model as a causal one with no more than a warning, so the model is asked.
    """
    import torch

    with torch.inference_mode():
        first, second = (model(input_ids=torch.tensor([[0, piece]])).logits[0, 0].double() for piece in (0, 1))
    return bool((first - second).abs().max() <= ALIKE * max(1.0, float(first.abs().max())))


def weights_of(folder: Path) -> str:
    """SHA-256 of the files of weights, one after the other in the order of their names."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]):
        found.update(path.read_bytes())
    return found.hexdigest()
