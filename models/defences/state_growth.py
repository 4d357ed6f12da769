"""How fast boxes of recurrent states widen, and how far a swap moves a vector: what decides whether bounds can prove.

*Growth per step.* A box |h - h0| <= a, |c - c0| <= b around a state is read together with one word, each gate's
interval by itself as interval arithmetic does. For small boxes the half-widths after the step, a' and b', are linear
in a and b:

    LSTM    b' = f b + |c| f(1-f) |Rf| a + |g| i(1-i) |Ri| a + i (1-g^2) |Rg| a
            a' = o (1 - tanh(c')^2) b' + |tanh(c')| o(1-o) |Ro| a
    GRU     a' = z a + |h - n| z(1-z) |Rz| a + (1-z) (1-n^2) (r |Rn| a + |Rn h + bn| r(1-r) |Rr| a)

with |R| of entries and the gates i, o, f, g and z, r, n at the state itself. The widths are followed along words that
are read one after the other from the zero state, and growth per step is (|w_n| / |w_m|)^(1 / (n - m)), |w| being the
sum of all widths, m the first `SETTLING` words and n all of them. Of several cells the largest counts.
Above 1, a box that a swap opens widens without end; below 1, it is forgotten.

*Relative swap size.* The median of |e_w - e_s| / |e_w| over words w and their synonyms s, in the Euclidean norm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .synonym_pairs import Pairs

if TYPE_CHECKING:
    import onnx

SETTLING = 10
"""Words after which the shape of the widths no longer tells how they began."""
FEWEST_WORDS = 2 * SETTLING
"""Words along which a growth can be seen."""
DRAWN = 500
"""Words along which growth shows to about two decimals."""
FLAT = 1.05
"""Growth up to which boxes are worth trying at any length."""
STEEP = 1.4
"""Growth from which only enumeration decides."""
SMALL_SWAP = 0.5
"""Relative size of a swap from which boxes prove little at any growth (measured: 0.10 to 0.19 proves, 1.4 does not)."""

ACTIVATIONS = {"LSTM": [b"Sigmoid", b"Tanh", b"Tanh"], "GRU": [b"Sigmoid", b"Tanh"]}
"""The usual ones, as ONNX lists them for each direction."""
DIRECTIONS = {b"forward": (False,), b"reverse": (True,), b"bidirectional": (False, True)}

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One direction of an LSTM or GRU in the order of ONNX: gates i, o, f, c or z, r, h; `reversed` reads backwards.

    W [gates * units, inputs], R [gates * units, units], `bias` of W, and `state_bias` of R.
    A GRU resets after the matrix product (`linear_before_reset`), as torch's does, or before it.
    """

    kind: Literal["LSTM", "GRU"]
    W: Numbers
    R: Numbers
    bias: Numbers
    state_bias: Numbers
    reversed: bool = False
    linear_before_reset: bool = True

    @property
    def units(self) -> int:
        return int(self.R.shape[1])


@dataclass(frozen=True)
class Step:
    """A state and the half-widths of a small box around it; `c` and its widths are empty for a GRU."""

    h: Numbers
    c: Numbers
    h_width: Numbers
    c_width: Numbers

    @property
    def width(self) -> float:
        return float(self.h_width.sum() + self.c_width.sum())


def growth_per_step(cells: Sequence[Cell], inputs: NDArray[Any]) -> float:
    """The growth along `inputs` [words, numbers], the vectors of a long text; the largest of the cells.

    All cells read `inputs`. A layer above reads `read_states` of the one below.
    """
    if len(inputs) < FEWEST_WORDS:
        raise ValueError(f"{len(inputs)} words are too few to see a growth; give {FEWEST_WORDS} or more")
    return max(growth_of(cell, inputs) for cell in cells)


def growth_of_layers(cells: Sequence[Cell], inputs: NDArray[Any]) -> float | None:
    """Of layers each of which reads the states of the one before, the first one `inputs`; the largest of all.

    None where some layer reads something else, or there are too few words.
    """
    found, waiting = list[float](), list(cells)
    while waiting:
        both = 2 if len(waiting) > 1 and not waiting[0].reversed and waiting[1].reversed else 1
        layer, waiting = waiting[:both], waiting[both:]
        if len(inputs) < FEWEST_WORDS or any(cell.W.shape[1] != inputs.shape[1] for cell in layer):
            return None
        found.append(growth_per_step(layer, inputs))
        inputs = read_states(layer, inputs)
    return max(found, default=None)


def growth_of(cell: Cell, inputs: NDArray[Any]) -> float:
    """Growth per step of one cell; widths are scaled to 1 after every word, so that none overflows."""
    widths = np.array([step.width for step in read_words(cell, inputs, width=1.0)])[SETTLING:]
    return 0.0 if not widths.all() else float(np.exp(np.log(widths).mean()))


def drawn_vectors(table: NDArray[Any]) -> Numbers:
    """Rows of an embedding table as a text of `DRAWN` words, the same ones each time: where no texts are at hand."""
    rows = np.flatnonzero(np.any(table, axis=1))
    chosen = np.random.default_rng(0).choice(rows, DRAWN)
    return np.asarray(table[chosen], dtype=np.float64)


def read_states(cells: Sequence[Cell], inputs: NDArray[Any]) -> Numbers:
    """The states h [words, units of all cells] in the order of the words, whichever way a cell reads."""
    found = []
    for cell in cells:
        states = np.array([step.h for step in read_words(cell, inputs, width=0.0)])
        found.append(states[::-1] if cell.reversed else states)
    return np.concatenate(found, axis=1)


def read_words(cell: Cell, inputs: NDArray[Any], *, width: float) -> Iterator[Step]:
    """The state after each word as the cell reads them; it begins at zero, in a box of this half-width.

    Before each word the half-widths are scaled to a sum of 1, where they have one.
    """
    if inputs.ndim != 2 or inputs.shape[1] != cell.W.shape[1]:
        raise ValueError(f"the cell reads vectors of {cell.W.shape[1]} numbers, not an array {list(inputs.shape)}")
    vectors = np.asarray(inputs, dtype=np.float64)
    zero, box = np.zeros(cell.units), np.full(cell.units, width)
    none = np.zeros(0)
    step = Step(zero, zero, box, box) if cell.kind == "LSTM" else Step(zero, none, box, none)
    read = lstm_step if cell.kind == "LSTM" else gru_step
    for x in vectors[::-1] if cell.reversed else vectors:
        if step.width:
            step = Step(step.h, step.c, step.h_width / step.width, step.c_width / step.width)
        step = read(cell, x, step)
        yield step


def lstm_step(cell: Cell, x: Numbers, step: Step) -> Step:
    """One word, as in the formula at the top."""
    sums = cell.W @ x + cell.R @ step.h + cell.bias + cell.state_bias
    i, o, f = sigmoid(sums[: 3 * cell.units]).reshape(3, -1)
    g = np.tanh(sums[3 * cell.units :])
    ia, oa, fa, ga = (np.abs(cell.R) @ step.h_width).reshape(4, -1)
    c = f * step.c + i * g
    bounded = np.tanh(c)
    c_width = f * step.c_width + np.abs(step.c) * f * (1 - f) * fa + np.abs(g) * i * (1 - i) * ia + i * (1 - g * g) * ga
    h_width = o * (1 - bounded * bounded) * c_width + np.abs(bounded) * o * (1 - o) * oa
    return Step(o * bounded, c, h_width, c_width)


def gru_step(cell: Cell, x: Numbers, step: Step) -> Step:
    """One word; where the reset comes first, R_n reads r * h, and r |h| r(1-r) and r a stand inside |R_n|."""
    units = cell.units
    sums = cell.W @ x + cell.bias
    state = cell.R[: 2 * units] @ step.h + cell.state_bias[: 2 * units]
    z, r = sigmoid(sums[: 2 * units] + state).reshape(2, -1)
    za, ra = (np.abs(cell.R[: 2 * units]) @ step.h_width).reshape(2, -1)
    last, last_bias = cell.R[2 * units :], cell.state_bias[2 * units :]
    if cell.linear_before_reset:
        inner = last @ step.h + last_bias
        n = np.tanh(sums[2 * units :] + r * inner)
        na = r * (np.abs(last) @ step.h_width) + np.abs(inner) * r * (1 - r) * ra
    else:
        n = np.tanh(sums[2 * units :] + last @ (r * step.h) + last_bias)
        na = np.abs(last) @ (r * step.h_width + np.abs(step.h) * r * (1 - r) * ra)
    h = (1 - z) * n + z * step.h
    h_width = z * step.h_width + np.abs(step.h - n) * z * (1 - z) * za + (1 - z) * (1 - n * n) * na
    return Step(h, step.c, h_width, step.c_width)


def sigmoid(x: Numbers) -> Numbers:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def recurrent_cells(model: onnx.ModelProto) -> tuple[Cell, ...]:
    """The LSTM and GRU nodes of a graph, one cell for each direction, in order.

    Nodes whose weights are computed, or whose gates are not the usual ones, are left out.
    """
    from onnx import helper, numpy_helper

    constants = {value.name: numpy_helper.to_array(value) for value in model.graph.initializer}
    cells = []
    for node in model.graph.node:
        attributes = {found.name: helper.get_attribute_value(found) for found in node.attribute}
        if not is_usual(node, attributes) or any(name and name not in constants for name in node.input[1:4]):
            continue
        W, R = (constants[name].astype(np.float64) for name in node.input[1:3])
        biased = len(node.input) > 3 and node.input[3]
        biases = constants[node.input[3]].astype(np.float64) if biased else np.zeros((len(W), 2 * W.shape[1]))
        for number, backwards in enumerate(DIRECTIONS[attributes.get("direction", b"forward")]):
            bias, state_bias = np.split(biases[number], 2)
            before = bool(attributes.get("linear_before_reset", 0))
            cells.append(Cell(node.op_type, W[number], R[number], bias, state_bias, backwards, before))
    return tuple(cells)


def is_usual(node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
    """Whether a node is an LSTM or GRU of sigmoids and tanh, without clipping, peepholes or coupled gates."""
    if node.op_type not in ACTIVATIONS or any(node.input[7:]) or "clip" in attributes or attributes.get("input_forget"):
        return False
    once = ACTIVATIONS[node.op_type]
    return attributes.get("activations", once) in (once, once * 2)


def relative_swap_size(table: NDArray[Any], pairs: Pairs) -> float:
    """Median of |e_w - e_s| / |e_w| over pairs (w, s) of rows; words whose vector is zero do not count."""
    vectors = np.asarray(table, dtype=np.float64)
    length = np.linalg.norm(vectors, axis=1)
    words, synonyms = pairs[length[pairs[:, 0]] > 0].T
    if not len(words):
        raise ValueError("no word with a synonym has a vector that is not zero")
    return float(np.median(np.linalg.norm(vectors[words] - vectors[synonyms], axis=1) / length[words]))


def meaning(growth: float, swap: float | None) -> str:
    """What the two numbers mean for what can be proved, in one line."""
    far = swap is not None and swap > SMALL_SWAP
    if growth >= STEEP or (growth > FLAT and far):
        return "boxes of states widen too fast for bounds: only enumeration decides"
    if growth > FLAT:
        return "boxes of states widen: bounds may decide short texts, enumeration the others"
    if far:
        return "boxes of states do not widen, but swaps move words far: bounds may still prove little"
    return "boxes of states do not widen: bounds can decide texts of any length"


def said_of(growth: float, swap: float | None) -> str:
    """Both numbers and what they mean."""
    size = "" if swap is None else f", relative swap size {swap:.2f}"
    return f"growth per step {growth:.2f}{size}: {meaning(growth, swap)}"
