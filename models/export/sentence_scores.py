"""What a Hugging Face model answers to sentences, in torch and, exported, in onnxruntime."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Disagreement, one_line
from .fast_tokenizer import FastTokenizer, Texts
from .torch_modules import runtime

BATCH = 16
TOKENS = 1024
"""Of one batch."""


def logits_of(model: Any, names: tuple[str, ...]) -> Any:
    import torch

    class Logits(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        """Tensors in the order of their names, the logits out."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(names, given, strict=True)), return_dict=True).logits

    return Logits().eval()


def tensors(tokenizer: FastTokenizer, names: tuple[str, ...], sentences: Sequence[Texts]) -> tuple[Any, ...]:
    import torch

    return tuple(torch.from_numpy(array) for array in arrays(tokenizer, names, sentences).values())


def arrays(
    tokenizer: FastTokenizer, names: tuple[str, ...], sentences: Sequence[Texts]
) -> dict[str, NDArray[np.int64]]:
    """A padded batch."""
    encodings = tokenizer.encode(sentences)
    rows = {
        "input_ids": [encoding.ids for encoding in encodings],
        "attention_mask": [encoding.attention_mask for encoding in encodings],
        "token_type_ids": [encoding.type_ids for encoding in encodings],
    }
    return {name: np.array(rows[name], dtype=np.int64) for name in names}


def torch_scores(
    model: Any, tokenizer: FastTokenizer, names: tuple[str, ...], sentences: Sequence[Texts]
) -> NDArray[np.float32]:
    """What the model answers to sentences without padding, as a pipeline asks it: those of one length together."""
    import torch

    called = [tokenizer.alone(texts) for texts in sentences]
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, tokens in enumerate(called):
        by_length[len(tokens["input_ids"])].append(place)
    scores = np.empty((len(sentences), model.config.num_labels), dtype=np.float32)
    with torch.no_grad():
        for places in by_length.values():
            for start in range(0, len(places), BATCH):
                some = places[start : start + BATCH]
                given = {name: torch.tensor([called[place][name] for place in some]) for name in names}
                try:
                    scores[some] = model(**given).logits.numpy()
                except Exception as error:  # the model's own
                    raise BadInput(
                        f"{tokenizer.source}: the model fails on {' / '.join(sentences[some[0]])[:40]!r}: "
                        f"{one_line(error)[:200]}"
                    ) from error
    if not np.isfinite(scores).all():
        raise BadInput(f"{tokenizer.source}: the model answers nan or infinity where a score is needed")
    return scores


def runtime_scores(
    path: Path, tokenizer: FastTokenizer, names: tuple[str, ...], sentences: Sequence[Texts]
) -> NDArray[np.float32]:
    """What onnxruntime answers to them in padded batches."""
    session = runtime(path)
    batches = padded_batches(tokenizer, sentences)
    try:
        return np.concatenate([session.run(None, arrays(tokenizer, names, batch))[0] for batch in batches])
    except Exception as error:  # onnxruntime raises many
        raise Disagreement(f"{path}: onnxruntime fails where torch answers: {one_line(error)[:200]}") from error


def padded_batches(tokenizer: FastTokenizer, sentences: Sequence[Texts]) -> Iterator[Sequence[Texts]]:
    """In the order given, so that there is padding, and no long text makes many short ones as long."""
    first, width = 0, 0
    for place, texts in enumerate(sentences):
        size = len(tokenizer.encode([texts])[0].ids)
        if place > first and (place - first == BATCH or max(width, size) * (place + 1 - first) > TOKENS):
            yield sentences[first:place]
            first, width = place, 0
        width = max(width, size)
    yield sentences[first:]
