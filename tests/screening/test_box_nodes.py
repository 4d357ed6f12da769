"""Trees read many numbers at once: what the checker makes of any bytes, and tables as its writer has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numeric_models import numeric
from random_boxes import random_case, space_of

from swapproof.proofs import check, check_box
from swapproof.proofs.writing import box_certificate as tree
from swapproof.proofs.writing.certificate import number
from swapproof.verifier.screening.boxes.box_nodes import NodeReader
from swapproof.verifier.screening.boxes.packed_numbers import packed, tables, unpacked


class Slow(check_box.Tree):
    """The checker's walk, number by number, but that every leaf is believed."""

    def plane(self, region: check_box.Region) -> Any:
        for _ in self.rows:
            self.number()
        self.table(64, 0)
        check.require(self.number() <= check_box.BETA_BITS, "betas")
        self.table(1 << 31, 0)


def test_any_bytes_are_read_or_refused_as_by_the_checker() -> None:
    """A byte or two of a tree changed, taken out or put in; but a phase set twice is refused later."""
    sample, random = numeric("deep", 5), np.random.default_rng(0)
    space = space_of(sample)
    ends = ((0, 1),) * len(space.network.inputs)
    seen = {True: 0, False: 0}
    for _ in range(600):
        case = random_case(sample, space, random)
        data = bytearray(case.tree)
        for _ in range(int(random.integers(0, 3))):
            at = int(random.integers(len(data)))
            data[at : at + int(random.integers(0, 2))] = random.integers(
                0, 256, size=int(random.integers(0, 2))
            ).tolist()
        slow = Slow(space, ends, case.constraints, bytes(data), math.inf)
        fast = NodeReader(space, ends, case.constraints, bytes(data), math.inf)
        try:
            slow.walk()
        except check.Refused as error:
            if "a phase" not in str(error):
                with pytest.raises(check.Refused):
                    fast.read()
                seen[False] += 1
        else:
            nodes = fast.read()
            assert len(nodes) == slow.nodes
            assert b"".join(node.data for node in nodes) == data
            seen[True] += 1
    assert min(seen.values()) > 100


def test_numbers_are_packed_as_one_by_one() -> None:
    edges = [1 << shift for shift in range(31)]
    values = np.array([0, *edges, *(edge - 1 for edge in edges), (1 << 31) - 1])
    data, begins = packed(values)
    assert data == b"".join(map(number, values.tolist()))
    back, places = unpacked(data)
    assert (back == values).all()
    assert (places == begins).all()


def test_tables_are_written_as_one_by_one() -> None:
    """Layers in the order of their names; none without entries."""
    random = np.random.default_rng(1)
    drawn = {name: random.integers(-300, 300, size=(5, size)) for name, size in ((7, 4), (2, 200), (300, 3))}
    drawn[2][1], drawn[300][:] = -1, -1
    for row, found in enumerate(tables(list(drawn.items()), 5)):
        plain = {name: {i: int(v) for i, v in enumerate(values[row]) if v >= 0} for name, values in drawn.items()}
        assert found == tree.table({name: values for name, values in plain.items() if values})
