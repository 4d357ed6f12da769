"""A Hugging Face folder as an ONNX file with its tokenizer: loaded offline, exported once, compared with torch.

`out` appears complete or not at all: model.onnx (the logits, batch and length free), tokenizer.json (what a call of
the tokenizer with truncation=True gives) with a tokenizer_config.json that says the same, the folder's own config.json
and special_tokens_map.json, and export.json, which says what was compared.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput, Disagreement, Unsupported
from ..recognition.whole_files import sha256
from .appearing_folder import appearing, refuse_occupied, refuse_unwritable, write_json
from .checkpoint_folder import Checkpoint, read_checkpoint
from .equivalence import Agreement, agreement
from .fast_tokenizer import FastTokenizer, Side, Texts, awkward, load_tokenizer, made_up, own_file
from .sentence_scores import logits_of, runtime_scores, tensors, torch_scores
from .torch_modules import EXPORTERS, OPSET, Exporter, TorchExport, export_torch
from .whole_classifier import is_multi_label, labels_of, load_model

ROLES = {"input_ids": "tokens", "attention_mask": "mask", "token_type_ids": "types"}
"""Inputs by the names that transformers gives them, in the order of the exported file."""
COPIED = ("config.json", "special_tokens_map.json")
LEFT = {*COPIED, "model.onnx", "tokenizer.json", "tokenizer_config.json", "export.json"}
PROBED = 1024
"""Tokens that a model is tried with, to see whether it has as many positions as its configuration says."""
EXAMPLES = 8
"""Sentences that the exporter is shown."""


@dataclass(frozen=True)
class Exported:
    """What a run needs to know of an exported folder."""

    model: Path
    tokenizer: Path
    inputs: Mapping[str, str]
    """Name -> role."""
    labels: tuple[str, ...]
    """Of config.json, in the order of the scores."""
    multi_label: bool
    """Every score is a question of its own, answered by its sigmoid."""
    length: int | None
    """Tokens to which texts are cut; tokenizer.json says the same."""
    pad: str
    pad_side: Side
    opset: int
    exporter: Exporter
    parameters: int
    asked: Mapping[str, int | None]
    """`fields` and `length` of the call."""
    sha256: Mapping[str, str]
    """Of `source` (all files that the export depends on), of `model` and of `tokenizer`."""
    agreement: Agreement
    """Of onnxruntime in padded batches with torch on each sentence alone."""
    versions: Mapping[str, str]
    remarks: tuple[str, ...]


def export_hugging_face(
    folder: Path | str,
    out: Path | str,
    *,
    opset: int = OPSET,
    sentences: Sequence[str | Texts] = (),
    fields: int = 1,
    length: int | None = None,
) -> Exported:
    """The sequence classifier of `folder` in the new folder `out`.

    `sentences` are compared, all of them: texts, or tuples of two for pairs. Without any, some are made up from the
    vocabulary. `fields`: texts of a sentence, 2 for pairs. `length`: tokens to cut to, where it is not what the
    tokenizer and the model say.
    """
    folder, out = Path(folder), Path(out)
    for package in ("transformers", "torch", "tokenizers", "safetensors"):
        if importlib.util.find_spec(package) is None:
            raise Unsupported(f"{folder}: needs {package}: pip install transformers torch tokenizers safetensors")
    checkpoint = read_checkpoint(folder)
    refuse_occupied(out)
    refuse_unwritable(out)
    source = checkpoint.digest()
    tokenizer = load_tokenizer(checkpoint)
    model = load_model(checkpoint)
    given = [(texts,) if isinstance(texts, str) else tuple(texts) for texts in sentences]
    if any(len(texts) != fields for texts in given):
        raise BadInput(f"export_hugging_face: sentences of {fields} texts are needed: fields says how many")
    remarks = [*check_vocabulary(folder, model, tokenizer)]
    names = tuple(name for name in input_names(folder, model, tokenizer) if not ignored(model, name))
    tokenizer = tokenizer.cut_to(longest(model, tokenizer, length, fields, remarks))
    given = given or made_up(tokenizer, fields, min(tokenizer.length or PROBED, PROBED) + 1)
    unusual = awkward(tokenizer, fields)
    tokenizer.check([*given, *unusual])
    remarks += remarks_on(checkpoint, model, tokenizer, given, unusual, names)
    labels = labels_of(folder, model)
    with appearing(out) as unfinished:
        made, tokenizer, agreed = export_and_compare(
            folder, model, tokenizer, names, given, unfinished / "model.onnx", opset, remarks
        )
        (unfinished / "tokenizer.json").write_text(tokenizer.content, encoding="utf-8", newline="\n")
        write_json(unfinished / "tokenizer_config.json", checkpoint.tokenizer_config | tokenizer.settings, indent=2)
        for name in COPIED:
            if (folder / name).exists():
                shutil.copyfile(folder / name, unfinished / name)
        exported = Exported(
            model=out / "model.onnx",
            tokenizer=out / "tokenizer.json",
            inputs={name: ROLES[name] for name in names},
            labels=labels,
            multi_label=is_multi_label(model),
            length=tokenizer.length,
            pad=str(tokenizer.called.pad_token),
            pad_side=tokenizer.side,
            opset=opset,
            exporter=made.exporter,
            parameters=sum(weight.numel() for weight in model.parameters()),
            asked={"fields": fields, "length": length},
            sha256={
                "source": source,
                "model": made.sha256,
                "tokenizer": hashlib.sha256(tokenizer.content.encode()).hexdigest(),
            },
            agreement=agreed,
            versions={name: importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
            remarks=tuple(remarks),
        )
        said = asdict(exported) | {"model": "model.onnx", "tokenizer": "tokenizer.json"}
        write_json(unfinished / "export.json", said, indent=2)
    return exported


def check_vocabulary(folder: Path, model: Any, tokenizer: FastTokenizer) -> Iterator[str]:
    """Remarks; special tokens without an embedding do no harm, for only a text that spells one has it."""
    rows = model.get_input_embeddings().num_embeddings
    beyond = tokenizer.tokens_from(rows)
    if beyond - {str(token) for token in tokenizer.called.all_special_tokens}:
        raise BadInput(
            f"{folder}: the tokenizer has ids up to {tokenizer.highest_id}, the model embeddings for {rows} tokens: "
            "one of them belongs to another model"
        )
    if tokenizer.highest_id < rows // 2:
        yield f"the tokenizer has {len(tokenizer.ids)} tokens, the model embeddings for {rows}: is it this model's?"
    if beyond:
        yield f"the model has no embedding for {', '.join(sorted(beyond))}: texts that spell it are not answered"


def input_names(folder: Path, model: Any, tokenizer: FastTokenizer) -> tuple[str, ...]:
    """What the tokenizer gives and the model takes, the mask in any case."""
    takes = inspect.signature(model.forward).parameters
    gives = {*tokenizer.called.model_input_names, "attention_mask"}
    names = tuple(name for name in ROLES if name in takes and name in gives)
    if names[:2] != ("input_ids", "attention_mask"):
        raise Unsupported(
            f"{folder}: {type(model).__name__} takes no input_ids with an attention_mask, without which the padding "
            "of a batch would change its answers"
        )
    return names


def ignored(model: Any, name: str) -> bool:
    """Whether the model takes this and does nothing with it, as DeBERTa does with types that it has no rows for: no
    exporter keeps such an input. What torch answers with it is compared all the same."""
    return name == "token_type_ids" and getattr(model.config, "type_vocab_size", None) == 0


def longest(model: Any, tokenizer: FastTokenizer, length: int | None, fields: int, remarks: list[str]) -> int | None:
    """The number of tokens to which texts are cut, tried with the model."""
    positions = getattr(model.config, "max_position_embeddings", None)
    known = [size for size in (tokenizer.length, positions) if isinstance(size, int) and size > 0]
    wanted = length if length is not None else min(known, default=None)
    if wanted is None:
        remarks.append("neither tokenizer nor model says how long a text may be: none is cut")
        return None
    special = tokenizer.called.num_special_tokens_to_add(pair=fields > 1)
    if wanted <= special:
        raise BadInput(f"{tokenizer.source}: a length of {wanted} has no room beside {special} special tokens")
    fits = wanted
    if wanted <= PROBED and not runs_at(model, tokenizer, wanted):
        # Positions that are counted from after the padding's id, as in RoBERTa.
        fits = (positions or wanted) - int(tokenizer.called.pad_token_id) - 1
        if length is not None or fits <= special or not runs_at(model, tokenizer, fits):
            raise BadInput(f"{tokenizer.source}: the model fails on texts of {wanted} tokens; set a smaller length")
    remarks.append(f"texts of more than {fits} tokens are cut, as the tokenizer does with truncation=True")
    return fits


def runs_at(model: Any, tokenizer: FastTokenizer, size: int) -> bool:
    import torch

    special = {*tokenizer.called.all_special_ids}
    word = next(id for id in range(tokenizer.highest_id + 1) if id not in special)
    tokens = torch.full((1, size), word)
    try:
        with torch.no_grad():
            model(input_ids=tokens, attention_mask=torch.ones_like(tokens))
    except (IndexError, RuntimeError, ValueError):
        return False
    return True


def remarks_on(
    checkpoint: Checkpoint,
    model: Any,
    tokenizer: FastTokenizer,
    sentences: Sequence[Texts],
    unusual: Sequence[Texts],
    names: tuple[str, ...],
) -> Iterator[str]:
    """What of this folder a reader must know, for another reading of it would give other answers."""
    name = type(tokenizer.called).__name__
    if checkpoint.slow is not None:
        yield f"tokenizer.json was made from {checkpoint.slow} by {name}"
    own = own_file(checkpoint)
    asked = [*sentences, *unusual]
    if own is not None and (other := tokenizer.differs(own, asked)):
        yield (
            f"transformers {importlib.metadata.version('transformers')} builds {name} anew from its vocabulary, which "
            f"gives other tokens than the folder's tokenizer.json for {other} of {len(asked)} sentences; "
            "what transformers gives is used"
        )
    if len(sentences[0]) > 1 and "token_type_ids" not in names and getattr(model.config, "type_vocab_size", 0) > 1:
        yield f"{name} gives no token_type_ids: the model reads both texts of a pair as of type 0"
    if any(texts[1] == "" for texts in sentences if len(texts) > 1):
        yield "a second text that is empty is read as one, as in calls with lists; a call with one pair drops it"
    stored = str(checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype") or "float32")
    if stored.removeprefix("torch.") != "float32":
        yield f"its weights are stored as {stored.removeprefix('torch.')}; answers are those of float32 arithmetic"
    if is_multi_label(model):
        yield "several labels can hold at once (multi_label_classification): each is the sigmoid of its score"
    elif model.config.num_labels == 1:
        yield "one score and no problem_type: read as a logit, as the text-classification pipeline does"


def export_and_compare(
    folder: Path,
    model: Any,
    tokenizer: FastTokenizer,
    names: tuple[str, ...],
    sentences: Sequence[Texts],
    path: Path,
    opset: int,
    remarks: list[str],
) -> tuple[TorchExport, FastTokenizer, Agreement]:
    """By the first exporter, and padded on the first side, with which every sentence is answered as torch does."""
    original = torch_scores(model, tokenizer, input_names(folder, model, tokenizer), sentences)
    example = tensors(tokenizer, names, sorted(sentences, key=lambda texts: sum(map(len, texts)))[:EXAMPLES])
    problems: list[Exception] = []
    for exporter in EXPORTERS:
        try:
            made = export_torch(logits_of(model, names), example, path, names=names, opset=opset, exporters=(exporter,))
        except (Unsupported, Disagreement) as error:
            problems.append(error)
            continue
        other: Side = "left" if tokenizer.side == "right" else "right"
        for side in (tokenizer.side, other):
            padded = tokenizer.padded_on(side)
            try:
                answers = runtime_scores(path, padded, names, sentences)
                agreed = agreement(answers, original, multi_label=is_multi_label(model))
            except Disagreement as error:
                problems.append(error)
                continue
            if side == other:
                remarks.append(
                    f"padding on the {tokenizer.side} changes its answers; batches are padded on the {other}"
                )
            if agreed.changed:
                remarks.append(
                    f"{agreed.changed} of {agreed.sentences} sentences stand nearer to another answer than "
                    f"the difference of {agreed.largest_difference:.1g} from torch, and get that answer"
                )
            return made, padded, agreed
    path.unlink(missing_ok=True)
    kind = type(problems[0])
    raise kind(f"{folder}: {str(problems[0]).removeprefix(f'{path}: ')}")


def refuse_foreign(out: Path) -> None:
    """Unless all that stands in `out` is an export, which may be replaced."""
    if out.is_dir() and not out.is_symlink() and {path.name for path in out.iterdir()} <= LEFT:
        return
    refuse_occupied(out)


def read_exported(out: Path) -> Exported | None:
    """What an earlier export left in `out`, if it is whole."""
    try:
        said = json.loads((out / "export.json").read_text(encoding="utf-8"))
        exported = Exported(
            **{
                **said,
                "model": out / said["model"],
                "tokenizer": out / said["tokenizer"],
                "labels": tuple(said["labels"]),
                "remarks": tuple(said["remarks"]),
                "agreement": Agreement(**said["agreement"]),
            }
        )
        for name, path in (("model", exported.model), ("tokenizer", exported.tokenizer)):
            if sha256(path) != exported.sha256[name]:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return exported
