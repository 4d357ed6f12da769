"""Which order of the classes fits the answers, and when that is no chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from swapproof.verifier.starting.label_fit import Fit, fit_of


def test_the_best_order_is_the_best_of_all() -> None:
    source = np.random.default_rng(1)
    for classes in (2, 3, 4, 5, 8):
        order = source.permutation(classes)
        confusion = source.integers(0, 3, (classes, classes))
        confusion[order, np.arange(classes)] += 20
        fit = Fit(confusion)
        assert fit.best_order == tuple(order.tolist())
        if classes < 6:
            every = itertools.permutations(range(classes))
            assert fit.rightly(fit.best_order) == max(map(fit.rightly, every))


@pytest.mark.parametrize(("right", "wrong", "clear"), [(58, 2, True), (40, 20, True), (33, 27, False), (4, 0, False)])
def test_an_order_is_clear_where_chance_would_hardly_give_it(right: int, wrong: int, clear: bool) -> None:
    fit = Fit(np.array([[right // 2, wrong // 2], [wrong - wrong // 2, right - right // 2]]))
    assert fit.clearly_better((0, 1), (1, 0)) == clear
    assert fit.stands_out == clear
    assert not fit.clearly_better((1, 0), (0, 1))


def test_two_classes_that_are_mixed_up_leave_the_order_open() -> None:
    fit = Fit(np.array([[50, 0, 0], [0, 25, 25], [0, 25, 25]]))
    assert not fit.stands_out


def test_texts_without_an_answer_are_in_no_cell() -> None:
    fit = fit_of(np.array([0, 1, -1, 1]), [0, 1, 1, 0], 2)
    assert fit.confusion.tolist() == [[1, 1], [0, 1]]
    assert (fit.texts, fit.accuracy, fit.chance) == (3, 2 / 3, 2 / 3)
