"""Models that read a mask, types, positions or a length beside the tokens, end to end: what is certified is what
onnxruntime says of every sentence, and both checkers accept it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from both_checkers import agree_on_each
from command_runs import results
from onnx import TensorProto
from pooled_models import NAMES, TEXTS, Pooled, answers, pooled, write_pooled
from tiny import SYNONYMS

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.cli import main

MADE = {
    "mask": Pooled(),
    "mask first": Pooled(roles=("mask", "tokens")),
    "three": Pooled(roles=("tokens", "mask", "types"), opset=20),
    "four": Pooled(roles=("positions", "tokens", "types", "mask"), length=None),
    "int32": Pooled(whole=TensorProto.INT32, roles=("tokens", "mask", "types")),
    "length": Pooled(roles=("tokens", "length")),
    "opset 22": Pooled(opset=22),
}


def agrees_with_brute_force(run: Path, decide: Any) -> int:
    """How many texts were settled; each as every sentence shows."""
    settled = 0
    for line in results(run):
        words = line["text"].split()
        sentences = [list(s) for s in itertools.product(*((word, *SYNONYMS.get(word, ())) for word in words))]
        broken = [s for s, label in zip(sentences, decide(sentences), strict=True) if label != line["label"]]
        least = min((sum(a != b for a, b in zip(s, words, strict=True)) for s in broken), default=None)
        assert line["status"] in ("exact", "unbreakable", "already_wrong")
        assert line["min_swaps"]["high"] == least
        settled += line["status"] != "already_wrong"
    return settled


@pytest.mark.parametrize("name", MADE)
def test_texts_are_settled_as_every_sentence_shows(name: str, tmp_path: Path) -> None:
    made, run = MADE[name], tmp_path / "run"
    task = write_pooled(tmp_path / "task", made)
    assert main(["certify", str(task), "--out", str(run), "--jobs", "1"]) == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "task" / "model.onnx"))
    decide = lambda sentences: [int(z.argmax()) for z in answers(session, sentences, made.length)]  # noqa: E731
    assert agrees_with_brute_force(run, decide) >= 3
    assert set(agree_on_each(run)) == {True}
    assert main(["check", str(run)]) == 0
    lines = [json.loads(path.read_bytes()) for path in sorted((run / "certificates").glob("*.json"))]
    roles = ["words" if role == "tokens" else "constant" for role in made.roles]
    assert all([role for role, _ in line["inputs"]] == roles for line in lines)
    assert {line["level"] for line in results(run)} == {"float32"}


def test_a_tokenizer_that_pads_on_the_left_gives_its_own_mask(tmp_path: Path) -> None:
    """The certificates name the mask of the padding where the tokenizer put it."""
    pytest.importorskip("tokenizers")
    task = write_pooled(tmp_path / "task", Pooled(special=2, length=8, roles=("tokens", "mask", "types")), side="left")
    run = tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--jobs", "1"]) == 0
    assert set(agree_on_each(run)) == {True}
    assert main(["check", str(run)]) == 0
    first = json.loads((run / "certificates" / "000000.json").read_bytes())
    words = len(TEXTS[0][0].split()) + 2
    assert first["inputs"][1] == ["constant", [0] * (8 - words) + [1] * words]
    assert first["inputs"][0][1][: 8 - words] == [0] * (8 - words)
    assert all(start >= 8 - words + 1 for start, _ in first["words"])


def test_names_of_the_users_own_are_read_as_the_task_says(tmp_path: Path) -> None:
    """Without roles the refusal names the input; with them the run is read again by its own task."""
    names = {**NAMES, "tokens": "a", "mask": "b"}
    task = write_pooled(tmp_path / "task", Pooled(), names=names)
    with pytest.raises(BadInput, match="input a has a role that its name does not tell"):
        open_model(tmp_path / "task" / "model.onnx")
    lines = task.read_text().replace("[model]\n", '[model]\ninputs = { a = "tokens", b = "mask" }\n')
    task.write_text(lines)
    run = tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--jobs", "1"]) == 0
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"input_ids": "tokens"}, "attention_mask is missing"),
        ({"input_ids": "tokens", "attention_mask": "mask", "more": "mask"}, "more names no input"),
        ({"input_ids": "tokens", "attention_mask": "tokens"}, "one input reads the tokens, not 2"),
        ({"input_ids": "mask", "attention_mask": "mask"}, "one input reads the tokens, not 0"),
        ({"input_ids": "text", "attention_mask": "mask"}, "is text, which cannot be read"),
    ],
)
def test_roles_that_do_not_fit_are_refused(given: dict[str, str], words: str, tmp_path: Path) -> None:
    write_pooled(tmp_path, Pooled())
    with pytest.raises((BadInput, Unsupported), match=words):
        open_model(tmp_path / "model.onnx", given)


def test_a_network_is_for_its_own_mask_alone(tmp_path: Path) -> None:
    """Another mask is another network, of which the weights are held once."""
    write_pooled(tmp_path, Pooled())
    model = open_model(tmp_path / "model.onnx")
    choices = ((2, 3), (4,), (0,), (0,), (0,), (0,))
    space, other = (SwapSpace(choices, after=((1,) * n + (0,) * (6 - n),)) for n in (2, 3))
    network = network_for(model, space)
    assert Query.of(network, space, 0).network is network
    with pytest.raises(BadInput, match="other values"):
        Query.of(network, other, 0)
    tables = [network_for(model, one).nodes[0].layer.table.stored for one in (space, other)]  # type: ignore[union-attr]
    assert tables[0] is tables[1]
    with pytest.raises(BadInput, match="attention_mask"):
        network_for(model, SwapSpace(choices))


def test_a_length_of_rank_one_is_refused_in_one_line(tmp_path: Path) -> None:
    proto = pooled(Pooled(roles=("tokens", "length")))
    del proto.graph.input[1].type.tensor_type.shape.dim[1]
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises((BadInput, Unsupported), match="lengths has rank 1; length are"):
        open_model(tmp_path / "model.onnx")


def test_other_commands_read_the_constants_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shares as every sentence shows; proofs in another form, bundles and questions; kappa refuses in one line."""
    made, task = MADE["mask first"], write_pooled(tmp_path / "task", MADE["mask first"])
    run, shares = tmp_path / "run", tmp_path / "shares"
    assert main(["certify", str(task), "--out", str(run)]) == 0
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "2", "--out", str(shares)]) == 0
    assert main(["check", str(shares)]) == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "task" / "model.onnx"))
    for line in results(shares):
        words = line["text"].split()
        sentences = [list(s) for s in itertools.product(*((word, *SYNONYMS.get(word, ())) for word in words))]
        near = [s for s in sentences if sum(a != b for a, b in zip(s, words, strict=True)) <= 2]
        kept = sum(int(z.argmax()) == line["label"] for z in answers(session, near, made.length))
        assert line["status"] == "exact"
        assert (line["robust_fraction"]["robust"], line["robust_fraction"]["total"]) == (str(kept), str(len(near)))
    sampled = ["measure", str(task), "--quantity", "pr", "--radius", "2", "--sampled", "--out", str(tmp_path / "s")]
    assert main(sampled) == 0
    assert main(["check", str(tmp_path / "s")]) == 0
    proved = next(line["id"] for line in results(run) if line["min_swaps"]["low"] > 1)
    assert main(["vipr", str(run), "--text-id", str(proved), "--out", str(tmp_path / "p.vipr")]) == 0
    assert main(["bundle", str(run), "--out", str(tmp_path / "b.zip")]) == 0
    assert main(["bundle", "--verify", str(tmp_path / "b.zip")]) == 0
    export = ["export", str(task), "--text-id", "0", "--format", "smt2", "--out", str(tmp_path / "q.smt2")]
    assert main(export) == 0
    capsys.readouterr()
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "k")]) == 2
    told = capsys.readouterr().err.strip()
    assert "kappa is measured of models with one input" in told
    assert "\n" not in told
