"""What engines claim, the checker accepts: at the level they claim it, on networks of every operator."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cases import cases
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from oracles import loaded, query_of
from random_networks import networks, swap_spaces, tiny_networks
from settling import statement_of

from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs.check import check_certificate
from swapproof.proofs.lower import read_model
from swapproof.proofs.onnx_file import Refused, Unusable
from swapproof.proofs.writing.certificate import Lower, write_certificate
from swapproof.verifier.engines.engine_table import ENGINES
from swapproof.verifier.engines.protocol import Bound, Budget, Engine
from swapproof.verifier.ladder.climbing import climb


def refusals(data: st.DataObject, engine: Engine, *, every_operator: bool) -> tuple[list[str], str | None]:
    """What the checker refuses of what the engine claims, and the contradiction the ladder sees."""
    sample = data.draw(networks() if every_operator else tiny_networks())
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary, most_choices=2 if every_operator else 3))
    with TemporaryDirectory() as folder:
        model, replay = loaded(sample, Path(folder))
        content = model.path.read_bytes()
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
        assume(not query.network.is_smooth)  # other engines' affair
        found: list[str] = []
        try:
            checked = read_model(content, {})
            checked.lower(inputs_of(query.space), words_of(query.space))
        except Unusable:
            assume(False)

        def check(bound: Bound) -> str | None:
            lower = Lower(bound.low - 1, bound.level, bound.tree)
            certificate = write_certificate(statement_of(query, content, lower=lower))
            try:
                check_certificate(certificate, checked, None)
            except Refused as error:
                found.append(f"{bound.level}, {bound.low - 1} swaps: {error}")
                return str(error)
            return None

        verdict = climb(query, replay, (engine,), Budget(), check)
    return found, verdict.contradiction


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@given(st.data())
def test_claims_about_tiny_networks_are_accepted(engine: Engine, data: st.DataObject) -> None:
    assert refusals(data, engine, every_operator=False) == ([], None)


@cases(30, suppress_health_check=list(HealthCheck))  # the checker reads fewer operators than the engines
@given(st.data())
def test_claims_about_networks_of_any_operator_are_accepted_at_some_level(data: st.DataObject) -> None:
    """A float32 claim may be refused (of a model that computes constants, say); over the reals none is."""
    engine = data.draw(st.sampled_from(ENGINES))
    found, contradiction = refusals(data, engine, every_operator=True)
    assert all(refusal.startswith("float32") for refusal in found)
    assert contradiction is None
