"""Smooth networks on vectors: tables, ends and boxes of random regions against every sentence, one by one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smooth_forms import asked, attending, bagged, gated, margins_at, recurrent, sentences, values
from smooth_values import EXACT

from swapproof.encodings.canonical import NUMBER_OF, Form
from swapproof.encodings.regions.arithmetic import FUNCTION, Ends, KernelEnds, Plain
from swapproof.encodings.regions.assignments import AssignmentTables, Choices
from swapproof.encodings.regions.box_runs import Remembered
from swapproof.encodings.regions.boxes import Boxes, boxed, segments_of
from swapproof.encodings.regions.region import Question
from swapproof.encodings.regions.region_search import Bounded, Effort, Evaluated, Region, Search, Split
from swapproof.encodings.regions.shared_tables import Evaluation, Stopped
from swapproof.encodings.sequences.chains import chains_of
from swapproof.encodings.sequences.sentence_margins import chained, margins_of
from swapproof.encodings.smooth.curves import CURVES

TAILS = ("mean", "padded", "greatest", "hidden")
Case = tuple[Form, Question, Choices, int]


@st.composite
def cases(draw: st.DrawFn, *, attention: bool = True) -> Case:
    """A network, a text, and a region of its space."""
    drawn = np.random.default_rng(draw(st.integers(0, 10**6)))
    length = draw(st.integers(1, 4))
    kind = draw(st.sampled_from((*TAILS, "gated", "bag", "bag", *["attention"] * attention)))
    match kind:
        case "attention":
            form = attending(drawn, length)
        case "bag":
            form = bagged(drawn, length)
        case "gated":
            form = gated(drawn, length, 2, start=draw(st.booleans()))
        case _:
            form = recurrent(drawn, length, 2, tail=kind)
    original = drawn.integers(0, 12, length).tolist()
    words = []
    for position in range(length):
        others = draw(st.lists(st.integers(0, 11), max_size=3, unique=True))
        tokens = (original[position], *(token for token in others if token != original[position]))
        if len(tokens) > 1:
            words.append((position, tokens))
    label = draw(st.integers(0, len(form.logits) - 1))
    question = asked(form, original, words, label)
    options = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1)))) for tokens in question.tokens
    )
    return form, question, Choices(options, draw(st.integers(0, 3))), label


def everything(case: Case) -> dict[tuple[int, ...], tuple[int, list[float]]]:
    """Tokens -> number of swaps and margins, of every sentence of the region."""
    form, question, choices, label = case
    found = sentences(question, choices.options, choices.swaps)
    return {tokens: (swaps, margins_at(question, form, tokens, label)) for swaps, tokens in found}


def test_states_beside_zeros_are_few_pieces() -> None:
    """One of all states, and one of the zeros, which say nothing of the margins."""
    question = asked(recurrent(np.random.default_rng(3), 4, 2, tail="padded"), [0, 1, 2, 3], [(1, (1, 5))], 0)
    assert [len(pieces) for pieces in question.program.pieces_of[-3:]] == [2, 1, 1]
    assert not any(question.program.pieces[piece].affine for piece in question.tail.parts)


@given(cases())
def test_tables_hold_every_sentence_once_with_its_margins(case: Case) -> None:
    _, question, choices, _ = case
    expected = everything(case)
    assert choices.count() == len(expected)
    rows, margins = margins_of(question, choices, Plain(np.float64))
    found = {question.sentence(choices, row): own for row, own in zip(rows.rows, margins, strict=True)}
    assert len(rows) == len(found) == len(expected)
    for tokens, (swaps, own) in expected.items():
        np.testing.assert_allclose(found[tokens], own, rtol=1e-9, atol=1e-9)
        row = next(row for row in rows.rows if question.sentence(choices, row) == tokens)
        assert (row >= 0).sum() == swaps


@pytest.mark.parametrize(("tail", "found"), [("mean", 2), ("padded", 2), ("greatest", None), ("hidden", None)])
def test_directions_of_an_lstm_are_chains_where_the_margins_add_up_their_states(tail: str, found: int | None) -> None:
    form = recurrent(np.random.default_rng(3), 4, 2, tail=tail)
    chains = chains_of(asked(form, [0, 1, 2, 3], [(1, (1, 5)), (3, (3, 6, 7))], 0))
    assert (None if chains is None else len(chains)) == found
    assert chains is None or [step.word for step in chains[0].steps] == [None, 0, None, 1]


def test_directions_of_a_gru_are_chains() -> None:
    form = gated(np.random.default_rng(3), 4, 2, start=True)
    chains = chains_of(asked(form, [0, 1, 2, 3], [(1, (1, 5)), (3, (3, 6, 7))], 0))
    assert chains is not None
    assert [[step.word for step in chain.steps] for chain in chains] == [[None, 0, None, 1], [1, None, 0, None]]


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
@given(seed=st.integers(0, 10**6), swaps=st.integers(0, 3), data=st.data())
def test_chains_and_tables_find_the_same_margins(cell: str, seed: int, swaps: int, data: st.DataObject) -> None:
    drawn = np.random.default_rng(seed)
    form = gated(drawn, 4, 2, start=data.draw(st.booleans())) if cell == "GRU" else recurrent(drawn, 4, 2, tail="mean")
    words = [(p, tuple(drawn.permutation(12)[: drawn.integers(2, 5)].tolist())) for p in range(4)]
    question = asked(form, [tokens[0] for _, tokens in words], words, 0)
    options = tuple(
        tuple(sorted(data.draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1)))) for tokens in question.tokens
    )
    choices = Choices(options, swaps)
    for arithmetic in (Plain(np.float64), Ends(2.0**-40), KernelEnds(2.0**-40)):
        found = chained(question, choices, arithmetic, lambda: None, None)
        whole, margins = Evaluation(question, choices, arithmetic, lambda: False, None).margins()
        if found is None:
            assert not len(whole)
            continue
        rows, own = found
        assert len(rows) == len(whole)
        own = own[rows.rows_of(whole)]
        if isinstance(arithmetic, Plain):
            np.testing.assert_allclose(own, margins, atol=1e-12)
        else:
            assert (own[:, 0] < margins.mean(axis=1)).all()
            assert (own[:, 1] > margins.mean(axis=1)).all()
            np.testing.assert_allclose(own.mean(axis=1), margins.mean(axis=1), atol=0.1)


@given(cases(), st.data())
def test_some_sentences_are_evaluated_alone(case: Case, data: st.DataObject) -> None:
    _, question, choices, _ = case
    rows = AssignmentTables(choices).of(choices.moving).rows
    if not len(rows):
        return
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    made, margins = margins_of(question, choices, Plain(np.float64), sentences=rows[some])
    whole, every = margins_of(question, choices, Plain(np.float64))
    known = {row.tobytes(): own for row, own in zip(whole.rows, every, strict=True)}
    expected = [known[row.tobytes()] for row in rows[some]]
    np.testing.assert_allclose(margins, expected, rtol=1e-9, atol=1e-12)
    assert (made.rows == rows[some]).all()


@pytest.mark.parametrize("kind", [Ends, KernelEnds])
@given(case=cases(), bits=st.sampled_from([20, 32, 60]))
def test_ends_hold_the_margins(kind: Any, case: Case, bits: int) -> None:
    _, question, choices, _ = case
    expected = everything(case)
    rows, ends = margins_of(question, choices, kind(2.0**-bits))
    for row, (low, high) in zip(rows.rows, ends, strict=True):
        own = np.array(expected[question.sentence(choices, row)][1])
        assert (low <= own + 1e-12).all()
        assert (own <= high + 1e-12).all()


@given(cases())
def test_ends_are_as_close_as_their_unit(case: Case) -> None:
    form, question, choices, _ = case
    if any(getattr(step, "function", "") in ("reciprocal", "sqrt") for step in form.steps):
        return
    _, ends = margins_of(question, choices, Ends(2.0**-50))
    assert ((ends[:, 1] - ends[:, 0]) < 1e-7).all()


@pytest.mark.parametrize("kind", [Ends, KernelEnds])
@given(case=cases(attention=False), split=st.booleans())
def test_boxes_are_below_every_sentence_of_their_budget(kind: Any, case: Case, split: bool) -> None:
    _, question, choices, _ = case
    expected = everything(case).values()
    segments = segments_of(question) if split else ()
    found = boxed(choices, Remembered(question, segments, kind(2.0**-32)))
    for budget in range(len(choices.forced), choices.swaps + 1):
        own = [margins for swaps, margins in expected if swaps <= budget]
        if own:
            assert (found.margins[budget] <= np.min(own, axis=0) + 1e-12).all()


@pytest.mark.parametrize("kind", [Ends, KernelEnds])
@given(seed=st.integers(0, 10**6), swaps=st.integers(0, 3), split=st.booleans(), data=st.data())
def test_boxes_of_steps_at_once_are_those_of_their_pieces(
    kind: Any, seed: int, swaps: int, split: bool, data: st.DataObject
) -> None:
    """But for some units of rounding; and what was found of another region serves the next one."""
    drawn = np.random.default_rng(seed)
    form = recurrent(drawn, 4, 2, tail=data.draw(st.sampled_from(TAILS)))
    words = [(p, tuple(drawn.permutation(12)[: drawn.integers(1, 5)].tolist())) for p in range(4)]
    question = asked(form, [tokens[0] for _, tokens in words], [each for each in words if len(each[1]) > 1], 0)
    segments = segments_of(question) if split else ()
    kept, piecewise = (Remembered(question, segments, kind(2.0**-40)) for _ in range(2))
    assert any(run.cells for run in kept.runs)
    piecewise.runs = tuple(replace(run, cells=()) for run in piecewise.runs)
    for _ in range(3):
        options = tuple(
            tuple(sorted(data.draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1)))) for tokens in question.tokens
        )
        choices = Choices(options, swaps)
        own, alone = boxed(choices, kept), boxed(choices, Remembered(question, segments, kind(2.0**-40)))
        np.testing.assert_array_equal(own.margins, alone.margins)
        assert own.jumps == alone.jumps
        np.testing.assert_allclose(own.margins, boxed(choices, piecewise).margins, atol=2.0**-30)


@given(cases(attention=False))
def test_boxes_of_one_sentence_are_its_margins(case: Case) -> None:
    form, question, choices, label = case
    alone = Choices(tuple((own[0],) for own in choices.options), len(choices.options))
    found = boxed(alone, Remembered(question, segments_of(question), Ends(2.0**-45)))
    ((_, tokens),) = sentences(question, alone.options, alone.swaps)
    np.testing.assert_allclose(found.margins[-1], margins_at(question, form, tokens, label), atol=1e-6)


def bag(seed: int, length: int = 4) -> tuple[Form, Question]:
    drawn = np.random.default_rng(seed)
    form = bagged(drawn, length)
    words = [(p, tuple(drawn.permutation(12)[: drawn.integers(2, 5)].tolist())) for p in range(length)]
    return form, asked(form, [tokens[0] for _, tokens in words], words, 0)


def elements(form: Form, question: Question) -> dict[int, slice]:
    """Piece that is affine in several words -> its elements."""
    start, found = len(form.constants), {}
    for number, step in enumerate(form.steps):
        pieces = question.program.pieces_of[number]
        if len(pieces) == 1 and question.word_sums.several(pieces[0]):
            found[pieces[0]] = slice(start, start + step.size)
        start += step.size
    return found


@pytest.mark.parametrize("kind", [Ends, KernelEnds])
@given(seed=st.integers(0, 10**6), swaps=st.integers(0, 3), data=st.data())
def test_what_is_affine_in_several_words_takes_its_extremes(
    kind: Any, seed: int, swaps: int, data: st.DataObject
) -> None:
    """No further out than a few units, and never further in."""
    form, question = bag(seed)
    options = tuple(
        tuple(sorted(data.draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1)))) for tokens in question.tokens
    )
    choices = Choices(options, swaps)
    region = Boxes(Remembered(question, (), kind(2.0**-40)), choices)
    region.found()
    found = [(count, values(form, tokens)) for count, tokens in sentences(question, options, swaps)]
    affine = elements(form, question)
    assert len(affine) == 2
    for piece, part in affine.items():
        for budget in range(len(choices.forced), swaps + 1):
            own = np.array([numbers[part] for count, numbers in found if count <= budget])
            low, high = region.boxes[piece][budget][:2]
            assert (low <= own.min(axis=0)).all()
            assert (high >= own.max(axis=0)).all()
            slack = 1e-9 if kind is Ends else 1e-4
            assert (low >= own.min(axis=0) - slack).all()
            assert (high <= own.max(axis=0) + slack).all()


def test_sums_of_products_are_sums_over_pairs_of_swaps() -> None:
    """In the plain evaluation nothing as wide as the products is left."""
    _, question = bag(1)
    sums = [number for number in question.needed_shortly if question.word_sums.pair_sum(number) is not None]
    assert [question.program.pieces[number].size for number in sums] == [1, 2]
    kinds = {type(question.program.pieces[number].operation).__name__ for number in question.needed_shortly}
    assert "Product" not in kinds
    assert "Look" not in kinds


def test_pairs_are_not_tabulated_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    _, question = bag(2)
    monkeypatch.setattr("swapproof.encodings.regions.word_sums.MOST_SWAPS", 2)
    _, other = bag(2)
    assert not any(other.word_sums.pair_sum(number) for number in range(len(other.program.pieces)))
    for arithmetic in (Plain(np.float64), Ends(2.0**-40)):
        one, two = (margins_of(each, each.whole(2), arithmetic)[1] for each in (question, other))
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-8)


def test_a_segment_for_every_step_of_a_recurrent_layer() -> None:
    form = recurrent(np.random.default_rng(0), 4, 2, tail="mean")
    question = asked(form, [0, 1, 2, 3], [(p, (p, p + 4)) for p in range(4)], 0)
    assert [segment.word for segment in segments_of(question)] == [0, 1, 2, 3, 3, 2, 1, 0]


def leaves_of(region: Region, options: tuple[tuple[int, ...], ...]) -> list[tuple[Any, tuple[tuple[int, ...], ...]]]:
    """With what the splits above say that each is about."""
    if isinstance(region, Split):
        sides = []
        for inside, part in ((True, region.left), (False, region.right)):
            own = tuple(option for option in options[region.word] if (option in region.options) is inside)
            assert own
            sides += leaves_of(part, (*options[: region.word], own, *options[region.word + 1 :]))
        return sides
    return [(region, options)]


@given(case=cases(attention=False), bounded=st.booleans())
def test_a_search_finds_a_sentence_or_a_tree_of_all(case: Case, bounded: bool) -> None:
    _, question, choices, _ = case
    whole = question.whole(choices.swaps)
    search = Search(question, Effort(time.monotonic() + 60), with_boxes=bounded)
    region = search.prove(whole, bounded=bounded)
    expected = everything((case[0], question, whole, case[3]))
    least = min(min(margins) for _, margins in expected.values())
    if region is None:
        assert search.found is not None
        swaps, margins = expected[search.found.tokens]
        assert search.found.swaps == swaps
        assert min(margins) == pytest.approx(search.found.margin, abs=1e-6)
        assert least < 1e-3
        return
    assert least > 0
    counted = 0
    for leaf, options in leaves_of(region, whole.options):
        assert isinstance(leaf, Evaluated | Bounded)
        assert leaf.choices.options == options
        counted += leaf.choices.count()
    assert counted == len(expected)


def test_a_search_stops_in_time() -> None:
    form = recurrent(np.random.default_rng(0), 3, 2, tail="mean")
    question = asked(form, [0, 1, 2], [(0, (0, 5))], 0)
    with pytest.raises(Stopped):
        Search(question, Effort(time.monotonic() - 1)).prove(question.whole(1), bounded=True)


@pytest.mark.parametrize("function", CURVES)
def test_functions_in_float64_err_less_than_ends_allow(function: Any) -> None:
    """numpy's own, and the error function of ours, against mpmath."""
    drawn = np.random.default_rng(0)
    points = np.concatenate([drawn.normal(size=400) * scale for scale in (1e-300, 1e-9, 1e-2, 1.0, 8.0, 40.0, 600.0)])
    points = np.concatenate([points, np.linspace(-20, 20, 801), [0.0, -0.0, 1e300, -1e300]])
    if function == "exp":
        points = points[points < 700]
    elif function == "reciprocal":
        points = points[np.abs(points) > 1e-290]
    elif function == "sqrt":
        points = np.abs(points)
    found = CURVES[function](points)
    with mpmath.workprec(200):
        for x, y in zip(points.tolist(), found.tolist(), strict=True):
            error = abs(mpmath.mpf(y) - EXACT[NUMBER_OF[function]](mpmath.mpf(x)))
            allowed = FUNCTION if function in ("tanh", "sigmoid", "erf") else FUNCTION * abs(y) + 2.0**-1000
            assert error <= allowed, (x, y)
