"""Inputs are recognised by name and type; what cannot be told is named, with the key to set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from swapproof.models.deployed.opening.onnx_signature import roles_of, scores_of, signature_of
from swapproof.models.errors import BadInput


@dataclass(frozen=True)
class Given:
    name: str
    type: str = "tensor(int64)"
    shape: tuple[Any, ...] = ("batch", "length")


def ids(*names: str) -> list[Given]:
    return [Given(name) for name in names]


@pytest.mark.parametrize(
    ("inputs", "roles"),
    [
        (ids("x"), ["tokens"]),
        (ids("input_ids", "attention_mask"), ["tokens", "mask"]),
        (
            ids("input_ids", "token_type_ids", "attention_mask", "position_ids"),
            ["tokens", "types", "mask", "positions"],
        ),
        (ids("input_word_ids", "input_mask", "input_type_ids"), ["tokens", "mask", "types"]),
        (ids("serving_default_input_ids:0", "serving_default_attention_mask:0"), ["tokens", "mask"]),
        (ids("model/Input_IDs:0"), ["tokens"]),
        ([Given("text.1"), Given("lengths", shape=("batch",))], ["tokens", "length"]),
        ([Given("input_ids"), Given("mask", "tensor(float)")], ["tokens", "mask"]),
        ([Given("anything", "tensor(string)", ("batch", 1))], ["text"]),
    ],
)
def test_inputs_are_known_by_their_names_and_a_single_other_one_is_the_tokens(
    inputs: list[Given], roles: list[str]
) -> None:
    assert roles_of(inputs) == {given.name: role for given, role in zip(inputs, roles, strict=True)}


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (
            ids("premise", "hypothesis"),
            "inputs of unknown role: premise int64 [batch, length], hypothesis int64 [batch, length]: set [model] "
            'inputs = { premise = "...", hypothesis = "..." }, each one of tokens, mask, types, positions, ',
        ),
        (
            ids("input_ids", "extra.1"),
            'input of unknown role: extra.1 int64 [batch, length]: set [model] inputs = { input_ids = "tokens", '
            '"extra.1" = "..." }, each one of tokens, mask, types, positions, length, text',
        ),
        (
            [Given("vectors", "tensor(float)", (None, 200, 50))],
            "input of unknown role: vectors float [?, 200, 50]: set [model] inputs",
        ),
        (ids("attention_mask", "token_type_ids"), "no input of tokens or text: attention_mask int64"),
        ([], "no input of tokens or text: none"),
    ],
)
def test_what_cannot_be_told_is_named_with_the_key_to_set(inputs: list[Given], problem: str) -> None:
    found = roles_of(inputs)
    assert isinstance(found, str)
    assert found.startswith(problem)


def test_inputs_that_contradict_each_other_are_refused() -> None:
    outputs = [Given("logits", "tensor(float)", ("batch", 2))]
    for inputs, reason in (
        ([Given("input_ids", shape=("b", 8)), Given("attention_mask", shape=("b", 9))], "different lengths"),
        ([Given("input_ids", shape=(1, "l")), Given("attention_mask", shape=(2, "l"))], "different batches"),
        ([Given("input_ids", shape=("l",))], r"input_ids int64 \[l\]: tokens are read as \[batch, length\]"),
    ):
        with pytest.raises(BadInput, match=reason):
            signature_of(inputs, outputs, None, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.ones((2, 3), np.float16), [[1, 1, 1]] * 2),
        (np.ones((2, 1, 3, 1)), [[1, 1, 1]] * 2),
        (np.ones((2, 1, 1)), [[1], [1]]),
        (np.ones(2), [[1], [1]]),
        ([{1: 0.25, 0: 0.75}, {0: 0.5, 1: 0.5}], [[0.75, 0.25], [0.5, 0.5]]),
    ],
)
def test_scores_are_a_row_for_each_sentence(value: Any, expected: list[list[float]]) -> None:
    found = scores_of(value, 2, "logits")
    assert found.dtype == np.float64
    assert found.tolist() == expected


@pytest.mark.parametrize("value", [np.ones((1, 2)), np.ones((2, 3, 4)), np.ones((2, 0)), np.ones((2, 2), int), 1.0, []])
def test_what_is_no_row_of_scores_for_each_sentence_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match="output logits: "):
        scores_of(value, 2, "logits")
