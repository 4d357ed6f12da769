"""What a change at one position does to the cut, carried by the elements that move: the same as by all of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from random_networks import assembled
from random_steps import STEPS

from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.verifier.screening.numbers.float64_rounding import growth
from swapproof.verifier.screening.numbers.kernels import Kernels
from swapproof.verifier.screening.numbers.linear_part import linear_part


@pytest.mark.parametrize("step", sorted(STEPS))
def test_kernels_are_those_of_whole_arrays(step: str) -> None:
    """Elements, sums, sums of absolute values, and how far these can be off."""
    sample = assembled((step,), 2)
    with tempfile.TemporaryDirectory() as folder:
        network = read_network(sample.save(Path(folder)), sample.length)
    kernels = Kernels(network)
    for position, places in kernels.places.items():
        widths = [kernels.tables[index].table.shape[1] for index, _ in places]
        whole = {
            index: np.zeros((sum(widths), layer.positions.size, layer.table.shape[1]))
            for index, layer in kernels.tables.items()
        }
        for start, (index, row), width in zip(np.cumsum([0, *widths]), places, widths, strict=False):
            whole[index][np.arange(start, start + width), row, np.arange(width)] = 1.0
        given = {index: array.reshape(-1, *network.nodes[index].shape) for index, array in whole.items()}
        found, gross = (linear_part(network, given, what) for what in ("differences", "gross differences"))
        kernel = kernels.at(position)
        assert np.array_equal(kernel.touched, np.flatnonzero(gross.cut.any(axis=0)))
        assert np.allclose(kernel.matrix, found.cut[:, kernel.touched], rtol=1e-13, atol=0)
        assert np.allclose(kernel.gross, gross.cut[:, kernel.touched], rtol=1e-13, atol=0)
        assert kernel.share == growth(max(found.roundings, gross.roundings) + sum(widths) + 3)
