"""What is sampled: softmax, division, the gates inside an LSTM, and arrays too short for the widest instructions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from swapproof.encodings.rounding.kernel_errors import softmax_error

from .kernel_functions import Function, Singles, function_named, run, session_of_graph, session_of_operator
from .kernel_sweep import WIDEST, Measured, measured

SEED = 0
GATES = ("input", "output", "forget", "cell")
"""As ONNX lays them out: i, o, f, c."""
OPEN, HELD = 40.0, 100.0
"""Far beyond where sigmoid and tanh of the runtime are exactly 1."""
WIDTHS, SPREADS = (2, 3, 7, 16, 50, 200), (1.0, 10.0, 40.0)


def drawn(count: int) -> Singles:
    """Numbers that functions are not flat at: from -20 to 20, most of them small."""
    generator = np.random.default_rng(SEED)
    sizes = np.exp2(generator.uniform(-30.0, 4.4, count))
    return np.asarray(sizes * generator.choice([-1.0, 1.0], count), dtype=np.float32)


def softmaxes(rows: int) -> dict[str, Any]:
    """The largest error of a share: absolute, relative, and as a part of what is stated for width and spread."""
    session, generator = session_of_operator("Softmax", rank=2, axis=-1), np.random.default_rng(SEED)
    absolute = relative = part = 0.0
    count = 0
    for spread in SPREADS:
        for width in WIDTHS:
            scores = generator.uniform(-spread, spread, (rows, width)).astype(np.float32)
            found = run(session, {"x0": scores}).astype(np.float64)
            exponentials = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
            true = exponentials / exponentials.sum(axis=1, keepdims=True)
            apart = np.abs(found - true)
            worst = float((apart / true).max())
            absolute, relative = max(absolute, float(apart.max())), max(relative, worst)
            part = max(part, worst / float(softmax_error(width, Fraction(2 * spread))))
            count += found.size
    return {"inputs": count, "absolute": absolute, "relative": relative, "part_of_stated": part}


def divisions(count: int) -> dict[str, Any]:
    """The largest relative error of a quotient."""
    generator = np.random.default_rng(SEED)
    parts = [np.exp2(generator.uniform(-60.0, 60.0, count)).astype(np.float32) for _ in range(2)]
    found = run(session_of_operator("Div", inputs=2), {"x0": parts[0], "x1": parts[1]}).astype(np.float64)
    true = parts[0].astype(np.float64) / parts[1].astype(np.float64)
    return {"inputs": count, "relative": float((np.abs(found - true) / true).max())}


def short_arrays(function: Function, count: int) -> int:
    """How many results differ when the same numbers come in arrays of fewer than WIDEST."""
    inputs = np.abs(drawn(count)) if function.stated.low == 0.0 else drawn(count)
    session, differ = session_of_operator(function.operator), 0
    whole = run(session, {"x0": inputs})
    for start, length in short_pieces(count):
        piece = slice(start, start + length)
        differ += int((run(session, {"x0": inputs[piece]}) != whole[piece]).sum())
    return differ


def short_pieces(count: int) -> list[tuple[int, int]]:
    """Lengths 1 to WIDEST - 1, in turn, end to end."""
    found, start, length = list[tuple[int, int]](), 0, 1
    while start + length <= count:
        found.append((start, length))
        start, length = start + length, length % (WIDEST - 1) + 1
    return found


def gates(count: int) -> dict[str, Measured]:
    """Gate -> what its values inside an LSTM of one step show.

    h = o * tanh(c),  c = f * c0 + i * g. Each gate is seen alone where the others are held at exactly 0 or 1.
    """
    return {gate: gate_alone(gate, count) for gate in GATES}


def gate_alone(gate: str, count: int) -> Measured:
    inputs, total = np.sort(drawn(count)), Measured()
    function = function_named("tanh" if gate == "cell" else "sigmoid")
    found = gate_values(gate, inputs)
    below = int((inputs < 0).sum())
    for chosen in (slice(below, None), slice(below - 1, None, -1)):
        total = measured(function, found[chosen], inputs[chosen], None, total)
    return total


def gate_values(gate: str, inputs: Singles) -> Singles:
    """The gate's own values, from the state (or the output) of an LSTM whose other gates are held."""
    shut = dict.fromkeys(GATES, 0.0)
    held: dict[str, tuple[dict[str, float], float]] = {
        # What others are held at, and the state before: i: c = i * tanh(OPEN); g: c = sigmoid(OPEN) * g; f: c = f * 1;
        # o: h = o * tanh(sigmoid(OPEN) * HELD).
        "input": ({**shut, "cell": OPEN}, 0.0),
        "cell": ({**shut, "input": OPEN}, 0.0),
        "forget": (shut, 1.0),
        "output": ({**shut, "forget": OPEN}, HELD),
    }
    biases, state = held[gate]
    rows = inputs.reshape(-1, WIDEST)
    session = lstm(gate, biases)
    start = np.full((1, len(rows), WIDEST), state, dtype=np.float32)
    found = run(session, {"x": rows[None], "c0": start}, output=0 if gate == "output" else 1)
    return found.reshape(-1)


def lstm(gate: str, biases: dict[str, float]) -> Any:
    """One step of WIDEST units, each of whose `gate` reads one input; nothing else is read."""
    from onnx import TensorProto, helper, numpy_helper

    weight = np.zeros((1, len(GATES), WIDEST, WIDEST), dtype=np.float32)
    weight[0, GATES.index(gate)] = np.eye(WIDEST)
    bias = np.zeros((1, 2, len(GATES), WIDEST), dtype=np.float32)
    bias[0, 0] = np.array([[biases[name]] for name in GATES])
    arrays = {
        "w": weight.reshape(1, -1, WIDEST),
        "r": np.zeros((1, len(GATES) * WIDEST, WIDEST), dtype=np.float32),
        "b": bias.reshape(1, -1),
    }
    shape: list[str | int | None] = [1, "rows", WIDEST]
    node = helper.make_node("LSTM", ["x", "w", "r", "b", "", "", "c0"], ["", "h", "c"], hidden_size=WIDEST)
    return session_of_graph(
        helper.make_graph(
            [node],
            "LSTM",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "c0")],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("h", "c")],
            [numpy_helper.from_array(array, name) for name, array in arrays.items()],
        )
    )
