"""torch modules as ONNX files: by either exporter, equal to the module, or not written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swapproof.models.errors import BadInput, Disagreement, Unsupported
from swapproof.models.export.equivalence import agreement
from swapproof.models.export.torch_modules import EXPORTERS, export_torch

torch = pytest.importorskip("torch")


def bag(turn_at: int = 0) -> Any:
    """Mean of embeddings, dropout, two layers; texts shorter than `turn_at` get the opposite scores."""

    class Bag(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(30, 8, padding_idx=0)
            self.hidden = torch.nn.Linear(8, 6)
            self.dropout = torch.nn.Dropout(0.5)
            self.logits = torch.nn.Linear(6, 2)

        def forward(self, tokens: Any) -> Any:
            real = (tokens != 0).unsqueeze(-1).float()
            mean = (self.embedding(tokens) * real).sum(1) / real.sum(1)
            logits = self.logits(self.dropout(torch.relu(self.hidden(mean))))
            return -logits if tokens.shape[1] < turn_at else logits

    torch.manual_seed(2)
    return Bag()


def tokens(texts: int = 1, length: int = 8) -> Any:
    return torch.arange(1, 1 + texts * length).reshape(texts, length) % 30


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_either_exporter_gives_a_file_that_answers_as_the_module_does(exporter: Any, tmp_path: Path) -> None:
    """Without dropout, at other numbers of texts and other lengths than the example, and the module as it was."""
    import onnx
    import onnxruntime

    module = bag().train()
    module.hidden.eval()
    made = export_torch(module, [tokens()], tmp_path / "model.onnx", exporters=(exporter,))
    assert module.training
    assert not module.hidden.training
    assert (made.exporter, made.opset, made.agreement.changed) == (exporter, 18, 0)
    assert [domain.version for domain in onnx.load(made.path).opset_import] == [18]
    session = onnxruntime.InferenceSession(str(made.path), providers=["CPUExecutionProvider"])
    module.eval()
    for given in (tokens(1, 3), tokens(5, 8), tokens(2, 11)):
        with torch.no_grad():
            expected = module(given).numpy()
        np.testing.assert_allclose(session.run(["logits"], {"tokens": given.numpy()})[0], expected, atol=1e-6)


def test_code_that_takes_two_paths_is_not_written_as_one(tmp_path: Path) -> None:
    """An exporter keeps the path that the example took; where another length takes the other one, that is noticed."""
    with pytest.raises(Unsupported, match="the exported model differs from the original by"):
        export_torch(bag(turn_at=5), [tokens()], tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
    export_torch(bag(turn_at=5), [tokens()], tmp_path / "model.onnx", dynamic_length=False)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_two_inputs_keep_their_names(tmp_path: Path) -> None:
    import onnxruntime

    class Masked(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(30, 3)

        def forward(self, ids: Any, mask: Any) -> Any:
            return (self.embedding(ids) * mask.unsqueeze(-1)).sum(1)

    module = Masked()
    given = tokens(2, 4), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    made = export_torch(module, given, tmp_path / "model.onnx", names=("ids", "mask"), output="scores")
    session = onnxruntime.InferenceSession(str(made.path), providers=["CPUExecutionProvider"])
    answers = session.run(["scores"], {"mask": given[1].numpy(), "ids": given[0].numpy()})[0]
    np.testing.assert_allclose(answers, module(*given).detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_the_two_texts_of_a_pair_have_lengths_of_their_own(exporter: Any, tmp_path: Path) -> None:
    """Where their examples have: whoever deploys the file then pads neither to the length of the other."""
    import onnxruntime

    class Pair(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(30, 3)

        def forward(self, one: Any, other: Any) -> Any:
            first, second = self.embedding(one), self.embedding(other)
            return torch.bmm(torch.softmax(torch.bmm(first, second.transpose(1, 2)), dim=-1), second).sum(1)

    module = Pair()
    given = tokens(2, 5), tokens(2, 3)
    made = export_torch(module, given, tmp_path / "model.onnx", names=("one", "other"), exporters=(exporter,))
    session = onnxruntime.InferenceSession(str(made.path), providers=["CPUExecutionProvider"])
    one, other = session.get_inputs()
    assert one.shape[0] == other.shape[0]
    assert one.shape[1] != other.shape[1]
    for sizes in ((3, 5), (9, 2), (4, 4)):
        pair = [tokens(3, size) for size in sizes]
        [answers] = session.run(None, {"one": pair[0].numpy(), "other": pair[1].numpy()})
        np.testing.assert_allclose(answers, module(*pair).detach().numpy(), atol=1e-5)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"names": ()}, "give one name for each"),
    "one token": ({"inputs": [tokens(2, 1)]}, "two tokens or more"),
    "unknown token": ({"inputs": [tokens(2, 4) + 90]}, r"the module fails on inputs \[2, 4\]: index out of range"),
    "no scores": ({"module": torch.nn.Embedding(30, 4)}, r"answers \[2, 8, 4\] for 2 texts"),
    "no folder": ({"path": Path("nowhere") / "model.onnx"}, "no such folder"),
}


@pytest.mark.parametrize("defect", REFUSED)
def test_what_is_no_classifier_is_refused_in_one_line(defect: str, tmp_path: Path) -> None:
    changes, message = REFUSED[defect]
    call = {"module": bag(), "inputs": [tokens()], "path": tmp_path / "model.onnx", **changes}
    with pytest.raises(BadInput, match=message) as caught:
        export_torch(call.pop("module"), call.pop("inputs"), call.pop("path"), **call)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_older_file_stays_when_the_new_export_fails(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("older")
    with pytest.raises(Unsupported):
        export_torch(bag(turn_at=5), [tokens()], tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_text() == "older"


def test_answers_that_rounding_turns_are_counted() -> None:
    """Two scores a millionth apart may change places; of several labels, and of one, the sign is the answer."""
    original = np.array([[1.0, 1.000001], [3.0, -2.0]])
    assert agreement(original[:, ::-1], original[:, ::-1]).changed == 0
    assert agreement(np.array([[1.000001, 1.0], [3.0, -2.0]]), original).changed == 1
    signs = np.array([[1e-7, 2.0], [3.0, -2.0]])
    assert agreement(signs * [[-1, 1], [1, 1]], signs, multi_label=True).changed == 1
    assert agreement(signs[:, :1] * [[-1], [1]], signs[:, :1]).changed == 1
    with pytest.raises(Disagreement, match="the exported model answers nan"):
        agreement(original * np.nan, original)
    with pytest.raises(Disagreement, match=r"answers \[2, 1\], the original \[2, 2\]"):
        agreement(original[:, :1], original)
