"""A Hugging Face folder before anything is loaded from it: which files count, and what in it is refused unread."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput, Unsupported, one_line
from ..recognition.whole_files import read_object, sha256

SLOW_VOCABULARIES = (
    "vocab.txt",
    "vocab.json",
    "spm.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
"""What a tokenizer.json is made from where there is none."""
BESIDE_THE_WEIGHTS = (".json", ".txt", ".model")
SAFETENSORS = "model.safetensors"
PICKLE = "pytorch_model.bin"


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    config: dict[str, Any]
    tokenizer_config: dict[str, Any]
    weights: tuple[Path, ...]
    """Of the format that is loaded: safetensors where there are both."""
    slow: str | None
    """The vocabulary that the tokenizer is made from, where there is no tokenizer.json."""

    @property
    def safetensors(self) -> bool:
        return self.weights[0].suffix == ".safetensors"

    def digest(self) -> str:
        """Of the names and contents of all files that what is loaded can depend on."""
        beside = [path for path in self.folder.iterdir() if path.suffix in BESIDE_THE_WEIGHTS and path.is_file()]
        whole = hashlib.sha256()
        for path in sorted({*beside, *self.weights}):
            whole.update(f"{sha256(path)}  {path.name}\n".encode())
        return whole.hexdigest()


def read_checkpoint(folder: Path) -> Checkpoint:
    """Refuses what would run code, and what cannot be a classifier with its tokenizer."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: {'a file, where a folder is needed' if folder.exists() else 'no such folder'}")
    if (folder / "adapter_config.json").exists():
        raise Unsupported(
            f"{folder}: an adapter of another model: merge the two (merge_and_unload) and save the result"
        )
    config = read_object(folder / "config.json")
    tokenizer_config: dict[str, Any] = {}
    if (folder / "tokenizer_config.json").exists():
        tokenizer_config = read_object(folder / "tokenizer_config.json")
    for name, content in (("config.json", config), ("tokenizer_config.json", tokenizer_config)):
        if content.get("auto_map"):
            raise Unsupported(
                f"{folder}: {name} asks for Python code of its own (auto_map, trust_remote_code), which is not run; "
                "export the model to ONNX where that code is trusted"
            )
    if config.get("quantization_config"):
        raise Unsupported(f"{folder}: its weights are quantised (quantization_config); save them as float32")
    check_architecture(folder, config)
    slow = None
    if not (folder / "tokenizer.json").exists():
        slow = next((name for name in SLOW_VOCABULARIES if (folder / name).exists()), None)
        if slow is None:
            raise BadInput(f"{folder}: holds no tokenizer; save it beside the model (tokenizer.save_pretrained)")
    weights = tuple(weight_files(folder))
    for path in weights:
        check_weights(path)
    return Checkpoint(folder, config, tokenizer_config, weights, slow)


def check_architecture(folder: Path, config: dict[str, Any]) -> None:
    """Heads of other tasks can have tensors of the same names and shapes."""
    if config.get("problem_type") == "regression":
        raise Unsupported(f"{folder}: a regression (problem_type), which answers no class")
    named = config.get("architectures")
    if not named or not isinstance(named, list):
        return
    if not any(str(name).endswith("ForSequenceClassification") for name in named):
        raise Unsupported(f"{folder}: a {named[0]} (config.json); sequence classifiers are run")


def weight_files(folder: Path) -> Iterator[Path]:
    for name in (SAFETENSORS, PICKLE):
        if (folder / name).exists():
            yield folder / name
            return
        index = folder / f"{name}.index.json"
        if not index.exists():
            continue
        shards = read_object(index).get("weight_map")
        if not isinstance(shards, dict) or not shards:
            raise BadInput(f"{index}: has no weight_map")
        for shard in sorted({str(shard) for shard in shards.values()}):
            if Path(shard).name != shard:
                raise BadInput(f"{index}: names {shard!r}, which is no file of the folder")
            if not (folder / shard).is_file():
                raise BadInput(f"{folder / shard}: no such file, and {index.name} names it")
            yield folder / shard
        return
    others = sorted(path.name for path in folder.glob("*") if path.suffix in (".h5", ".msgpack", ".gguf", ".onnx"))
    found = f" ({', '.join(others)} is not read)" if others else ""
    raise BadInput(f"{folder}: holds no weights: neither {SAFETENSORS} nor {PICKLE}{found}")


def check_weights(path: Path) -> None:
    """Sizes that are true: safetensors compares its header with the file; a zip file says what it unpacks to."""
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy"):
                pass
        except (SafetensorError, OSError) as error:
            raise BadInput(f"{path}: not a whole safetensors file ({one_line(error)})") from error
        return
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise BadInput(f"{path}: not a whole file of torch.save ({one_line(error)})") from error
    if unpacked > path.stat().st_size:
        raise BadInput(f"{path}: unpacks to {unpacked} bytes, which torch.save, which packs nothing, never writes")
