"""Networks of the MMWS shape and texts of any size, drawn from a seed, to see how cost grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.models.architectures.flat_network import Flat
from swapproof.models.architectures.network_shape import Shape
from swapproof.models.export.trained_graph import onnx_model

from ...engines.greedy import hardest_swap
from ...engines.protocol import Budget
from ...ladder.replay import Replay

Array = NDArray[Any]
EMBEDDING = 2
DEPARTING = 0.5
"""Size of what is random in a hidden unit, by that of what is common. With 1 (1.3 after training on IMDb) random units
are so much harder than trained ones that nobody settles most texts in seconds."""


@dataclass(frozen=True)
class Size:
    """Of one text and its network; `minimum` is that of the swaps which hurt most, one after the other."""

    positions: int = 100
    candidates: int = 8
    hidden: int = 64
    minimum: int = 6

    @property
    def vocabulary(self) -> int:
        """Padding, and options of every position of its own."""
        return 1 + self.positions * (self.candidates + 1)

    @property
    def shape(self) -> Shape:
        return Shape(Flat(EMBEDDING, (self.hidden,)), self.vocabulary, self.positions, 2)


def drawn_weights(shape: Shape, random: np.random.Generator) -> dict[str, Array]:
    """As training leaves them: a hidden unit follows one direction common to all, by the sign of what it is for, and
    departs from it at random. A swap moves a word by 1.4 of its size."""
    weights: dict[str, Array] = {"embedding": random.normal(size=(shape.vocabulary, EMBEDDING))}
    for name, inputs, outputs in shape.dense:
        weights[f"{name}.weight"] = random.normal(size=(outputs, inputs)) / np.sqrt(inputs)
        weights[f"{name}.bias"] = random.normal(size=outputs) / 4
    (hidden, inputs, _), (last, _, _) = shape.dense
    common = random.normal(size=inputs) / np.sqrt(inputs)
    purpose = np.sign(weights[f"{last}.weight"][0] - weights[f"{last}.weight"][1])
    weights[f"{hidden}.weight"] = purpose[:, None] * common + DEPARTING * weights[f"{hidden}.weight"]
    return weights


def grown_text(size: Size, seed: int, folder: Path) -> tuple[Query, Replay]:
    """A text that the network answers with class 0, until about `minimum` words are swapped."""
    weights = drawn_weights(size.shape, np.random.default_rng(seed))
    options = np.arange(1, size.vocabulary).reshape(size.positions, size.candidates + 1)
    space = SwapSpace.of(options.tolist())
    opened(size.shape, weights, folder)
    before, after = margins_of(asked(space, folder)[0], size.minimum)
    weights["logits.bias"][0] -= (before + after) / 2
    opened(size.shape, weights, folder)
    return asked(space, folder)


def asked(space: SwapSpace, folder: Path) -> tuple[Query, Replay]:
    model = open_model(folder / "model.onnx")
    return Query.of(network_of(model, space.length), space, 0), Replay.open(model)


def opened(shape: Shape, weights: dict[str, Array], folder: Path) -> None:
    import onnx

    onnx.save(onnx_model(shape, weights), folder / "model.onnx")


def margins_of(query: Query, swaps: int) -> tuple[float, float]:
    """The margins before and after the last of so many swaps, each the one that hurts most."""
    differences, taken, margins = Differences.of(query), list[int](), [0.0]
    margins[0] = float(differences.margins(differences.base[None])[0, 0])
    while len(taken) < swaps and (best := hardest_swap(differences, taken, 0, Budget())) is not None:
        taken.append(best[0])
        margins.append(best[1])
    return margins[max(0, len(taken) - 1)], margins[-1]


def write_many(texts: int, seed: int, folder: Path, positions: int = 20, words: int = 2_000, synonyms: int = 4) -> Path:
    """A task of so many short texts of random words, each with the answer of its network."""
    import json

    import onnxruntime

    random = np.random.default_rng(seed)
    shape = Shape(Flat(EMBEDDING, (64,)), words + 2, positions, 2)
    opened(shape, drawn_weights(shape, random), folder)
    names = ["<pad>", "<unk>", *(f"w{number}" for number in range(words))]
    tokens = random.integers(2, words + 2, size=(texts, positions))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    labels = session.run(["logits"], {"tokens": tokens})[0].argmax(axis=1)
    rows = [
        {"text": " ".join(names[token] for token in row), "label": int(label)}
        for row, label in zip(tokens.tolist(), labels, strict=True)
    ]
    others = random.integers(2, words + 2, size=(words, synonyms)).tolist()
    swaps = {
        name: [names[one] for one in some if names[one] != name] for name, some in zip(names[2:], others, strict=True)
    }
    (folder / "vocabulary.json").write_text(json.dumps(names))
    (folder / "synonyms.json").write_text(json.dumps(swaps))
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = folder / "task.toml"
    task.write_text(
        f'[model]\nonnx = "model.onnx"\nvocabulary = "vocabulary.json"\nlength = {positions}\n'
        'labels = ["0", "1"]\n'
        '[data]\nfile = "texts.jsonl"\ntext = "text"\nlabel = "label"\n[swaps]\nfile = "synonyms.json"\n'
    )
    return task
