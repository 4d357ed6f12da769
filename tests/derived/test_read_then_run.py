"""One layer of attention is read by default; what that leaves open is run, and both stand in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attending_networks import LENGTH, ROWS, Shape, transformer
from graph_builder import Builder
from smooth_cases import f32, model

from swapproof.verifier import certify
from swapproof.verifier.audit.certified_run import audit_run
from swapproof.verifier.audit.findings import Finding
from swapproof.verifier.derived import read_then_run

WORDS = [f"w{number}" for number in range(ROWS)]
SWAPS = {"w1": ["w3", "w5"], "w4": ["w8"], "w6": ["w8", "w7"], "w3": ["w7"]}
TEXTS = ("w1 unheard w4 w6 w3", "w3 w4 w1 w6 w1", "w2 w2 w6 w6 w4")


def task_of(folder: Path, road: str = "", network: bytes | None = None, texts: tuple[str, ...] = TEXTS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(transformer(Shape(size=0.6), 4) if network is None else network)
    (folder / "vocabulary.json").write_text(json.dumps(WORDS))
    (folder / "synonyms.json").write_text(json.dumps(SWAPS))
    rows = [f"{text}\t{label}" for text in texts for label in (0, 1)]
    (folder / "texts.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    chosen = f'road = "{road}"\n' if road else ""
    (folder / "task.toml").write_text(
        f'[model]\nonnx = "model.onnx"\nvocabulary = "vocabulary.json"\nlength = {LENGTH}\npad = 0\n'
        f'unknown = "w2"\n{chosen}'
        'labels = ["x", "y"]\n[data]\nfile = "texts.tsv"\ntext = "text"\nlabel = "label"\n'
        '[swaps]\nfile = "synonyms.json"\n'
    )
    return folder / "task.toml"


def lines_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The same texts on the other road."""
    folder = tmp_path_factory.mktemp("ran")
    certify(task_of(folder, "run"), folder / "run")
    return lines_of(folder / "run")


def test_what_is_read_has_the_same_ends_as_what_is_run(tmp_path: Path, ran: list[dict[str, Any]]) -> None:
    certify(task_of(tmp_path), tmp_path / "run")
    read = lines_of(tmp_path / "run")
    assert [line["min_swaps"] for line in read] == [line["min_swaps"] for line in ran]
    assert {line["level"] for line in read} == {"real"}
    assert {line["level"] for line in ran} == {"replay"}


@pytest.mark.parametrize("words", [3, 64])
def test_what_reading_leaves_open_is_run(
    words: int, tmp_path: Path, ran: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of texts that are too long to be read at all, and of others; the check asks the model again."""
    monkeypatch.setattr(read_then_run, "LONGEST", words)
    monkeypatch.setattr(read_then_run, "READING", 0.0)
    certify(task_of(tmp_path), tmp_path / "run")
    lines = lines_of(tmp_path / "run")
    assert [line["min_swaps"] for line in lines] == [line["min_swaps"] for line in ran]
    assert "replay" in {line["level"] for line in lines}
    audit = audit_run(tmp_path / "run", jobs=1)
    assert all(isinstance(found, Finding) and found.refusal is None for found in audit.findings)


def pooled_by_attention(b: Builder, x: str, rng: np.random.Generator) -> str:
    """Every word weighs what it says itself; no word looks at another."""
    scores = b.call("MatMul", b.call("Tanh", x), b.constant(rng.normal(size=(4, 1)).astype(np.float32)))
    return b.call("ReduceSum", b.call("Mul", x, b.call("Softmax", scores, axis=1)), b.wholes(1), keepdims=0)


def mean_over_its_length(b: Builder, x: str, _: np.random.Generator) -> str:
    mean = b.call("ReduceMean", x, b.wholes(1), keepdims=0)
    length = b.call("Sqrt", b.call("ReduceMean", b.call("Mul", mean, mean), b.wholes(-1), keepdims=1))
    return b.call("Div", mean, b.call("Add", length, b.constant(f32(0.01))))


def last_word(b: Builder, x: str, _: np.random.Generator) -> str:
    """By its place: as many words as are no padding, less one."""
    words = b.call("Cast", b.call("Not", b.call("Equal", "tokens", b.constant(np.array(0)))), to=7)
    place = b.call("Sub", b.call("ReduceSum", words, b.wholes(1)), b.constant(np.array(1)))
    places = b.call("Expand", b.call("Unsqueeze", place, b.wholes(-1)), b.wholes(1, 1, 4))
    return b.call("Tanh", b.call("GatherElements", x, places, axis=1))


def last_word_of_the_text(b: Builder, x: str, _: np.random.Generator) -> str:
    words = b.call("Cast", b.call("Not", b.call("Equal", "tokens", b.constant(np.array(0)))), to=7)
    place = b.call("Sub", b.call("ReduceSum", words, b.wholes(1), keepdims=0), b.constant(np.array(1)))
    both = b.call("Concat", b.wholes(0), place, axis=0)
    return b.call("Exp", b.call("GatherND", x, b.call("Unsqueeze", both, b.wholes(0))))


@pytest.mark.parametrize(
    ("pooling", "level"),
    [
        (pooled_by_attention, "real"),
        (mean_over_its_length, "real"),
        (last_word, "kernel"),
        (last_word_of_the_text, "kernel"),
    ],
)
def test_other_poolings_are_read_too(pooling: Any, level: str, tmp_path: Path) -> None:
    def made(b: Builder, x: str, rng: np.random.Generator) -> str:
        head = b.constant(rng.normal(size=(4, 2)).astype(np.float32))
        return b.call("MatMul", pooling(b, x, rng), head)

    network = model(made, 7, classes=2)
    certify(task_of(tmp_path / "ran", "run", network), tmp_path / "ran" / "run")
    certify(task_of(tmp_path / "read", "", network), tmp_path / "read" / "run")
    ran, read = (lines_of(tmp_path / road / "run") for road in ("ran", "read"))
    assert [line["min_swaps"] for line in read] == [line["min_swaps"] for line in ran]
    assert {line["level"] for line in read} == {level}


def low_scores(b: Builder, x: str, rng: np.random.Generator) -> str:
    """Attention that one word lowers far below what finite masks are."""
    padding = b.call("Unsqueeze", b.call("Equal", "tokens", b.constant(np.array(0))), b.wholes(-1))
    scores = b.call("MatMul", x, b.constant(f32(-30000, 0, 0, 0).reshape(4, 1)))
    masked = b.call("Where", padding, b.constant(np.float32(-np.inf)), scores)
    return b.call("ReduceSum", b.call("Mul", x, b.call("Softmax", masked, axis=1)), b.wholes(1), keepdims=0)


def masked_maximum(b: Builder, x: str, _: np.random.Generator) -> str:
    """Of words that are all far below 0."""
    padding = b.call("Unsqueeze", b.call("Equal", "tokens", b.constant(np.array(0))), b.wholes(-1))
    low = b.call("Sub", b.call("Mul", x, b.constant(f32(2**17))), b.constant(f32(2**19)))
    masked = b.call("Where", padding, b.constant(np.float32(-np.inf)), low)
    high = b.call("Add", b.call("ReduceMax", masked, b.wholes(1), keepdims=0), b.constant(f32(2**19)))
    return b.call("Mul", high, b.constant(f32(2**-17)))


@pytest.mark.parametrize(("masking", "level"), [(low_scores, "real"), (masked_maximum, "float32")])
def test_masks_of_minus_infinity_are_read_as_they_are(masking: Any, level: str, tmp_path: Path) -> None:
    network, texts = model(masking, 7, classes=2), (*TEXTS, "w1 w3", "w4")
    certify(task_of(tmp_path / "ran", "run", network, texts), tmp_path / "ran" / "run")
    certify(task_of(tmp_path / "read", "", network, texts), tmp_path / "read" / "run")
    ran, read = (lines_of(tmp_path / road / "run") for road in ("ran", "read"))
    assert [line["min_swaps"] for line in read] == [line["min_swaps"] for line in ran]
    assert {line["level"] for line in read if line["status"] != "ambiguous"} == {level}


@pytest.mark.parametrize("lowest", [-1e9, np.finfo(np.float32).min])
def test_texts_are_run_of_which_float32_loses_what_proofs_would_speak_of(lowest: float, tmp_path: Path) -> None:
    """Where all words are masked by such a number, what they score is rounded away, and over the reals it decides."""

    def made(b: Builder, x: str, rng: np.random.Generator) -> str:
        hidden = b.call("Unsqueeze", b.call("Less", "tokens", b.constant(np.array(4))), b.wholes(-1))
        low = b.call("Where", hidden, b.constant(np.float32(lowest)), b.constant(np.float32(0)))
        scores = b.call("Add", b.call("MatMul", x, b.constant(f32(3, -2, 1, 2).reshape(4, 1))), low)
        return b.call("ReduceSum", b.call("Mul", x, b.call("Softmax", scores, axis=1)), b.wholes(1), keepdims=0)

    task = task_of(tmp_path, "", model(made, 5, classes=2), ("w4 w6 w7", "w5 w4", "w1 w3 w2", "w3"))
    certify(task, tmp_path / "run")
    assert [line["level"] for line in lines_of(tmp_path / "run")] == ["real"] * 4 + ["replay"] * 4


def hidden_lines(b: Builder, x: str, _: np.random.Generator) -> str:
    """Padding looks at nothing, and counts with the weight 0."""
    padding = b.call("Unsqueeze", b.call("Equal", "tokens", b.constant(np.array(0))), b.wholes(-1))
    low = b.call("Where", padding, b.constant(np.float32(-1e30)), b.constant(np.float32(0)))
    scores = b.call("Add", b.call("MatMul", x, b.call("Transpose", x, perm=[0, 2, 1])), low)
    mixed = b.call("MatMul", b.call("Softmax", scores, axis=-1), x)
    weights = b.call("Where", padding, b.constant(np.float32(0)), b.constant(np.float32(1)))
    return b.call("ReduceSum", b.call("Mul", mixed, weights), b.wholes(1), keepdims=0)


def test_lines_that_are_hidden_whole_are_run_though_nothing_comes_of_them(tmp_path: Path) -> None:
    """check.py looks at them all the same."""
    task = task_of(tmp_path, "", model(hidden_lines, 7, classes=2), (*TEXTS, "w1 w3", "w4"))
    certify(task, tmp_path / "run")
    levels = {(line["positions"] == LENGTH, line["level"]) for line in lines_of(tmp_path / "run")}
    assert levels == {(True, "real"), (False, "replay")}


def test_a_run_goes_on_where_it_was(tmp_path: Path, ran: list[dict[str, Any]]) -> None:
    task = task_of(tmp_path)
    certify(task, tmp_path / "run", limit=2)
    outcome = certify(task, tmp_path / "run", limit=6)
    assert outcome.summary["texts"] == 6
    assert [line["min_swaps"] for line in lines_of(tmp_path / "run")] == [line["min_swaps"] for line in ran]


def test_naming_engines_leaves_reading_alone(tmp_path: Path) -> None:
    certify(task_of(tmp_path), tmp_path / "run", engines="sequence")
    assert not (tmp_path / "run" / "deployed").exists()
    assert {line["level"] for line in lines_of(tmp_path / "run")} == {"real"}


def test_a_road_that_is_named_is_taken(tmp_path: Path) -> None:
    certify(task_of(tmp_path, "read"), tmp_path / "run")
    assert not (tmp_path / "run" / "deployed").exists()


@pytest.mark.parametrize(
    ("ran", "read", "better"),
    [
        ((2, 2), (1, 2), True),
        ((2, None), (1, None), True),
        ((1, 2), (1, None), True),
        ((1, 2), (1, 2), False),
        ((2, None), (1, 3), False),
        ((1, 2), (2, None), False),
    ],
)
def test_running_replaces_what_was_read_only_where_it_says_more(
    ran: tuple[int, int | None], read: tuple[int, int | None], better: bool
) -> None:
    lines = [{"status": "open", "min_swaps": {"low": low, "high": high}} for low, high in (ran, read)]
    assert read_then_run.narrower(*lines) is better
    assert not read_then_run.narrower({**lines[0], "status": "ambiguous"}, lines[1])
