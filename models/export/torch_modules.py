"""A torch module as an ONNX file, compared with the module before it is put in its place.

torch has two exporters. The older one, which traces (`torchscript`), is tried first: it is ten times as quick, and
onnxruntime runs transformers from it a fifth faster. Where it fails, the newer one (`dynamo`) is tried. A trace keeps
one path through the code, so what comes out is compared on other batches and lengths than it was made from.
"""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported, one_line
from .equivalence import Agreement, agreement

if TYPE_CHECKING:
    import torch

Exporter = Literal["torchscript", "dynamo"]
EXPORTERS: tuple[Exporter, ...] = ("torchscript", "dynamo")
OPSET = 18
LARGEST = 2**31 - 2**20
"""Bytes of weights: one protobuf file holds less than two gibibytes."""


@dataclass(frozen=True)
class TorchExport:
    """The file that was written, by which of torch's exporters, and how near its answers are."""

    path: Path
    sha256: str
    exporter: Exporter
    opset: int
    agreement: Agreement


def export_torch(
    module: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    path: Path | str,
    *,
    names: Sequence[str] = ("tokens",),
    output: str = "logits",
    dynamic_length: bool = True,
    opset: int = OPSET,
    exporters: Sequence[Exporter] = EXPORTERS,
) -> TorchExport:
    """`module(*inputs)` gives the scores, float [batch, classes]. The first axis of every input is the batch; of inputs
    with two or more, the second is the length of the texts, free unless `dynamic_length` is False. Inputs whose
    examples are of one length share it; other ones, as the two texts of a pair, have lengths of their own."""
    import torch

    path = Path(path)
    if not path.parent.is_dir():
        raise BadInput(f"{path.parent}: no such folder")
    examples = as_examples(inputs, names, dynamic_length)
    if sum(value.numel() * value.element_size() for value in module.state_dict().values()) > LARGEST:
        raise Unsupported(f"{path}: the weights take more than one ONNX file can hold, 2 GiB")
    free = free_axes(examples, names, dynamic_length)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    said: list[str] = []
    with evaluating(module), torch.no_grad():
        checks = [(given, scores_of(module, given, path)) for given in other_shapes(examples, dynamic_length)]
        for exporter in exporters:
            try:
                with quiet():
                    run_exporter(exporter, module, examples, unfinished, tuple(names), output, free, opset)
                agreed = compare(unfinished, names, checks)
                content = unfinished.read_bytes()
                unfinished.replace(path)
                return TorchExport(path, hashlib.sha256(content).hexdigest(), exporter, opset, agreed)
            except OSError as error:
                raise BadInput(f"{path}: cannot be written ({error.strerror or error})") from error
            except Exception as error:  # whatever a module can make an exporter raise
                said.append(f"{exporter}: {one_line(error)[:200] or type(error).__name__}")
            finally:
                unfinished.unlink(missing_ok=True)
    raise Unsupported(f"{path}: torch cannot export the module at opset {opset}: {'; '.join(said)}")


def as_examples(inputs: Sequence[torch.Tensor], names: Sequence[str], dynamic_length: bool) -> tuple[torch.Tensor, ...]:
    """At least two texts: exporters take a batch of one for a constant."""
    if len(inputs) != len(names):
        raise BadInput(f"export_torch: {len(inputs)} inputs and {len(names)} names: give one name for each")
    if not inputs or any(value.dim() == 0 or len(value) == 0 for value in inputs):
        raise BadInput("export_torch: every input needs a batch of one or more texts as its first axis")
    if len({len(value) for value in inputs}) > 1:
        raise BadInput("export_torch: the inputs hold different numbers of texts")
    if dynamic_length and any(value.dim() > 1 and value.shape[1] < 2 for value in inputs):
        raise BadInput("export_torch: a length that is free needs example texts of two tokens or more")
    return tuple(value if len(value) > 1 else value.repeat(2, *[1] * (value.dim() - 1)) for value in inputs)


def free_axes(examples: Sequence[torch.Tensor], names: Sequence[str], dynamic_length: bool) -> list[dict[int, str]]:
    """Axis -> name, of each input: axes of one name are of one size."""
    if not dynamic_length:
        return [{0: "batch"} for _ in examples]
    shared = len({value.shape[1] for value in examples if value.dim() > 1}) < 2
    lengths = ["length" if shared else f"{name}_length" for name in names]
    return [
        {0: "batch", 1: length} if value.dim() > 1 else {0: "batch"}
        for value, length in zip(examples, lengths, strict=True)
    ]


def other_shapes(examples: tuple[torch.Tensor, ...], dynamic_length: bool) -> Iterator[tuple[torch.Tensor, ...]]:
    """The examples themselves, one of them alone, more of them, and, where the length is free, their halves."""
    yield examples
    yield tuple(value[-1:] for value in examples)
    yield tuple(value.repeat(2, *[1] * (value.dim() - 1))[:-1] for value in examples)
    if dynamic_length and all(value.dim() > 1 for value in examples):
        yield tuple(value[:, : (value.shape[1] + 1) // 2] for value in examples)


def scores_of(module: torch.nn.Module, given: tuple[torch.Tensor, ...], path: Path) -> NDArray[Any]:
    try:
        scores = module(*given)
    except Exception as error:  # the module's own
        shapes = ", ".join(str(list(value.shape)) for value in given)
        raise BadInput(
            f"{path}: the module fails on inputs {shapes}: {one_line(error)[:200]}; "
            "texts of one length only are exported with dynamic_length=False"
        ) from error
    if getattr(scores, "dim", lambda: 0)() != 2 or len(scores) != len(given[0]):
        shape = list(getattr(scores, "shape", ())) or type(scores).__name__
        raise BadInput(f"{path}: the module answers {shape} for {len(given[0])} texts; scores are [texts, classes]")
    values: NDArray[Any] = scores.float().numpy()
    return values


def run_exporter(
    exporter: Exporter,
    module: torch.nn.Module,
    examples: tuple[torch.Tensor, ...],
    path: Path,
    names: tuple[str, ...],
    output: str,
    free: list[dict[int, str]],
    opset: int,
) -> None:
    import torch

    stated: dict[str, Any] = {"input_names": list(names), "output_names": [output], "opset_version": opset}
    if exporter == "torchscript":
        axes = dict(zip((*names, output), (*free, {0: "batch"}), strict=True))
        torch.onnx.export(module, examples, path, dynamic_axes=axes, dynamo=False, **stated)
        return
    import onnx

    shapes = [dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in free]
    program = torch.onnx.export(module, examples, dynamic_shapes=shapes, dynamo=True, verbose=False, **stated)
    if program is None:
        raise RuntimeError("no program came out")
    proto = program.model_proto
    for node in proto.graph.node:  # the lines of code that every node comes from, with the folders they lie in
        del node.metadata_props[:]
    onnx.save(proto, path)


def compare(
    path: Path, names: Sequence[str], checks: Sequence[tuple[tuple[torch.Tensor, ...], NDArray[Any]]]
) -> Agreement:
    """What onnxruntime answers beside what torch answered."""
    session = runtime(path)
    answers = [
        session.run(None, {name: value.numpy() for name, value in zip(names, given, strict=True)})[0]
        for given, _ in checks
    ]
    return agreement(np.concatenate(answers), np.concatenate([scores for _, scores in checks]))


def runtime(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong comes back as an exception too
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """No dropout, and every part afterwards as it was."""
    parts = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in parts:
            part.training = training


@contextmanager
def quiet() -> Iterator[None]:
    """Without what libraries print of their own affairs."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
