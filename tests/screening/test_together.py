"""Texts decided together: with the numbers of each, and never more than check.py accepts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import exact_recipe as exact
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import Case, lowered, network_of, statement
from random_networks import swap_spaces, tiny
from screening_cases import SHAPES, wild, within

from swapproof.encodings.onnx_files.onnx_reading import open_model, read_network
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen
from swapproof.verifier.screening.form.agreed_network import agreed
from swapproof.verifier.screening.many_texts import Roots, Table
from swapproof.verifier.screening.numbers.margins import Recipe
from swapproof.verifier.screening.numbers.swap_moves import originals
from swapproof.verifier.screening.numbers.values_beyond_cut import magnitudes
from swapproof.verifier.screening.screened_text import Text

Spaces = list[tuple[tuple[int, ...], ...]]


@given(data=st.data(), shape=st.sampled_from(SHAPES), source=st.integers(0, 2**32 - 1), is_wild=st.booleans())
def test_the_bounds_of_several_texts_lie_within_their_errors(
    data: st.DataObject, shape: str, source: int, is_wild: bool
) -> None:
    """Each text with a number of swaps, a label and positions of its own: against the recipe over fractions."""
    sample = tiny(shape, source, classes=data.draw(st.integers(2, 3)))
    with TemporaryDirectory() as name:
        path = wild(sample, source, Path(name)) if is_wild else sample.save(Path(name))
        network = read_network(path, sample.length)
        found = agreed(network, lowered(path.read_bytes(), (c.Input("words", (0,) * sample.length),), ()).sha256)
    spaces: Spaces = data.draw(st.lists(swap_spaces(sample.length, sample.vocabulary), min_size=1, max_size=4))
    labels = [data.draw(st.integers(0, network.classes - 1)) for _ in spaces]
    k = np.array([data.draw(st.integers(0, 4)) for _ in spaces])
    pairs = zip(spaces, labels, strict=True)
    texts = [Text(Query.of(network, SwapSpace(choices), label), found) for choices, label in pairs]
    for text, started in zip(texts, originals(network, [text.query.space for text in texts]), strict=True):
        text.started = started
    table = Table.of(found.kernels, texts)
    if table is None:
        return
    roots = Roots(table, k)
    low, high = roots.ends
    reach = np.maximum(np.abs(low), np.abs(high)) + roots.errors
    sizes = magnitudes(network, {index: reach[:, part] for index, part in roots.parts.items()})
    rivals = np.array([(label + 1) % network.classes for label in labels])
    number, error = Recipe(roots, sizes).margin(np.array(labels), rivals)
    for row, (choices, label, rival) in enumerate(zip(spaces, labels, rivals, strict=True)):
        masks = tuple((1 << len(options)) - 1 for options in choices)
        truth = exact.Recipe(network, choices, exact.Region(masks, int(k[row]), {}, []))
        assert within(number[row], truth.margin(label, int(rival)), error[row])


@given(
    data=st.data(),
    shape=st.sampled_from(SHAPES),
    source=st.integers(0, 2**32 - 1),
    level=st.sampled_from(("real", "float32")),
)
def test_certificates_prepared_together_get_the_verdicts_of_the_checker(
    data: st.DataObject, shape: str, source: int, level: c.Level
) -> None:
    """Proofs of one leaf and witnesses of several texts: what is accepted, check.py accepts in the same words."""
    sample = tiny(shape, source, small=data.draw(st.booleans()), classes=data.draw(st.integers(2, 3)))
    with TemporaryDirectory() as name:
        path = sample.save(Path(name))
        model = path.read_bytes()
        screen = Screen(open_model(path), read_model(model), None)
        classes = len(network_of(model, sample.length).logits)
        certificates = []
        for choices in data.draw(st.lists(swap_spaces(sample.length, sample.vocabulary), min_size=2, max_size=5)):
            case = Case(model, choices, data.draw(st.integers(0, classes - 1)), classes)
            able = [(p, len(options)) for p, options in enumerate(choices) if len(options) > 1]
            made = tuple((p, data.draw(st.integers(1, count - 1))) for p, count in able if data.draw(st.booleans()))
            lower = c.Lower(data.draw(st.integers(0, 3)), level, c.Linear())
            certificates.append(c.write_certificate(statement(case, lower=lower)))
            certificates.append(c.write_certificate(statement(case, upper=c.Upper(made, (level, "replay")))))
        tops = [check.parse_canonical(each) for each in certificates]
        screen.prepare(tops)
        for top, each in zip(tops, certificates, strict=True):
            found = screen.verdict(top, 60.0)
            if found is not None:
                assert found == check.check_certificate(each, screen.checked)
