"""What labels of any spelling mean, and that a task file says it as it is meant."""

from __future__ import annotations

import pytest

from swapproof.models.errors import BadInput
from swapproof.models.readers import label_index
from swapproof.models.recognition.class_labels import Labels, labels_of, stated

TWO = ("negative", "positive")


def as_certify_reads(labels: Labels) -> dict[str, int]:
    """Of each label in the data, by what the task file says."""
    written = labels.written
    if isinstance(written, list):
        return {value: label_index(value, written) for value in labels.golds}
    names = list(dict.fromkeys(written.values()))
    assert tuple(names) == labels.names
    return {value: label_index(value, names, spelt=written) for value in labels.golds}


@pytest.mark.parametrize(
    ("found", "names", "golds"),
    [
        (["0", "1"], None, [0, 1]),
        (["0", "1"], TWO, [0, 1]),
        (["0.0", "1.0"], TWO, [0, 1]),
        (["-1", "1"], TWO, [0, 1]),
        (["1", "2"], TWO, [0, 1]),
        (["1", "2"], None, [0, 1]),
        (["1.0", "2.0"], None, [0, 1]),
        (["False", "True"], TWO, [0, 1]),
        (["POSITIVE", " Negative"], TWO, [1, 0]),
        (["so-so", "good"], ("good", "So So", "bad"), [1, 0]),
        (["0", "2"], ("a", "b", "c"), [0, 2]),
        (["1", "3"], ("a", "b", "c"), [0, 2]),
        (["LABEL_1", "LABEL_0"], ("LABEL_0", "LABEL_1"), [1, 0]),
        (["1", "2", "3", "4", "5"], None, [0, 1, 2, 3, 4]),
    ],
)
def test_labels_mean_what_they_say_and_are_written_so(
    found: list[str], names: tuple[str, ...] | None, golds: list[int]
) -> None:
    labels = labels_of(found, names, max(2, len(names or found)), "column 'label'")
    expected = dict(zip(found, golds, strict=True))
    assert dict(labels.golds) == expected
    assert as_certify_reads(labels) == expected


@pytest.mark.parametrize("names", [None, TWO])
@pytest.mark.parametrize("found", [["0", "1"], ["-1", "1"], ["negative", "positive"], ["No", "Yes"]])
def test_in_another_order_every_label_keeps_its_meaning(found: list[str], names: tuple[str, ...] | None) -> None:
    if names and found == ["No", "Yes"]:
        pytest.skip("these are not the model's")
    labels = labels_of(found, names, 2, "column 'label'")
    turned = labels.reordered((1, 0), "")
    assert dict(turned.golds) == {value: 1 - gold for value, gold in labels.golds.items()}
    assert as_certify_reads(turned) == dict(turned.golds)


def test_of_three_classes_the_order_is_that_of_the_outputs() -> None:
    labels = labels_of(["a", "b", "c"], None, 3, "").reordered((2, 0, 1), "")
    assert labels.names == ("c", "a", "b")
    assert as_certify_reads(labels) == {"a": 1, "b": 2, "c": 0}


@pytest.mark.parametrize(
    ("found", "names", "classes"),
    [
        (["spam", "ham"], TWO, 2),
        (["a", "b", "c"], None, 2),
        (["0", "1", "2"], TWO, 2),
        (["0", "7"], None, 2),
        (["a"], None, 2),
    ],
)
def test_labels_that_fit_no_classes_are_one_line_that_says_how_to_say_it(
    found: list[str], names: tuple[str, ...] | None, classes: int
) -> None:
    with pytest.raises(BadInput, match="say which is which: --set 'labels=") as met:
        labels_of(found, names, classes, "data.csv: column 'label'")
    assert "\n" not in str(met.value)


def test_only_names_in_the_data_leave_the_order_open() -> None:
    assert not labels_of(["bad", "good"], None, 2, "").settled
    assert not labels_of(["bad", "good"], ("LABEL_0", "LABEL_1"), 2, "").settled
    assert labels_of(["bad", "good"], ("good", "bad"), 2, "").settled
    assert labels_of(["0", "1"], None, 2, "").settled


def test_what_the_user_says_must_say_all() -> None:
    assert stated(["bad", "good"], ["0", "1"], "").golds == {"0": 0, "1": 1}
    assert stated({"n": "bad", "y": "good"}, ["y", "n"], "").golds == {"y": 1, "n": 0}
    with pytest.raises(BadInput, match="also holds maybe"):
        stated({"n": "bad", "y": "good"}, ["y", "n", "maybe"], "")
