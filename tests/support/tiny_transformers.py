"""Hugging Face folders of tiny classifiers with random weights, and tokenizers trained on a few sentences."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

SENTENCES = (
    "The film is good and the acting is superb.",
    "a bad movie, a truly bad movie",
    "Café olé, naïve résumé",
    "it was not good; it wasn't terrible!",
    "an unforgettable experience, really",
) * 3
POSITIONS = 24
CLASSES = 3
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40}
SHARED = {"num_labels": CLASSES, "initializer_range": 0.3, "max_position_embeddings": POSITIONS}
BERT_TOKENS = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token")}
ROBERTA_TOKENS = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "cls_token": "<s>",
    "sep_token": "</s>",
}
ALBERT_TOKENS = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def word_pieces() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = list(BERT_TOKENS.values())
    tokenizer.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    )
    ids = tokenizer.get_vocab()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return tokenizer


def bytes_joined() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def unigrams() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = list(ALBERT_TOKENS.values())
    tokenizer.train_from_iterator(
        SENTENCES,
        trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


DEBERTA = {
    **SMALL,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 8,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
    "pooler_hidden_size": 32,
    "type_vocab_size": 0,
}
DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 40}
MODERNBERT = {**SMALL, "local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
ROBERTA = {**SMALL, "max_position_embeddings": POSITIONS + 2, "pad_token_id": 1, "type_vocab_size": 1}
TYPES = ["input_ids", "token_type_ids", "attention_mask"]

KINDS: dict[str, tuple[str, dict[str, Any], Callable[[], Any], dict[str, Any]]] = {
    "bert": ("Bert", SMALL, word_pieces, {**BERT_TOKENS, "model_input_names": TYPES}),
    "roberta": ("Roberta", ROBERTA, bytes_joined, ROBERTA_TOKENS),
    "distilbert": ("DistilBert", DISTILBERT, word_pieces, BERT_TOKENS),
    "albert": ("Albert", {**SMALL, "embedding_size": 16}, unigrams, {**ALBERT_TOKENS, "model_input_names": TYPES}),
    "deberta": ("DebertaV2", DEBERTA, unigrams, ALBERT_TOKENS),
    "modernbert": ("ModernBert", MODERNBERT, word_pieces, BERT_TOKENS),
    "gpt2": ("GPT2", GPT2, bytes_joined, {**ROBERTA_TOKENS, "padding_side": "left"}),
}
"""Classes of transformers by the beginning of their names, sizes, tokenizer, its settings."""


def save(kind: str, folder: Path, **more: Any) -> Path:
    """The folder that `save_pretrained` of model and tokenizer leaves."""
    import torch
    import transformers as library

    transformers: Any = library
    name, sizes, tokens, settings = KINDS[kind]
    tokenizer = tokens()
    torch.manual_seed(5)
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    try:
        config = getattr(transformers, f"{name}Config")(
            **{"vocab_size": tokenizer.get_vocab_size(), **SHARED, **sizes, **more}
        )
        getattr(transformers, f"{name}ForSequenceClassification")(config).save_pretrained(folder)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, model_max_length=POSITIONS, **settings
        ).save_pretrained(folder)
    finally:
        logging.disable(logging.NOTSET)
        transformers.utils.logging.enable_progress_bar()
    return folder


def change(path: Path, **values: Any) -> None:
    """Keys of a JSON file; those set to None go."""
    content = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}), encoding="utf-8")
