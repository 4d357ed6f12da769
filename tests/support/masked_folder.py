"""A masked language model of random weights in a folder, as transformers saves one."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_masked(folder: Path, words: Sequence[str]) -> Path:
    """Of these words and pieces, a BERT."""
    import torch

    transformers: Any = importlib.import_module("transformers")
    known = [*SPECIAL, *words]
    (folder / "vocab.txt").write_text("\n".join(known) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(known),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder
