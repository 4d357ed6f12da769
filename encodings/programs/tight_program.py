"""Our integer program of "do at most k swaps leave a margin below -TOLERANCE?", as small as bounds allow.

    swap[p, t] for the alternatives t that a witness may need (`program_reduction`): at most one a position, k in all
    y = relu(x):  rows only on the side where a wrong y would pay: where a greater y can only raise the margin,
                  y >= x and y >= slope x, and nothing is to be decided; where it can only lower it, a binary
                  y <= x - (1 - slope) l (1 - a),  y <= slope x + (1 - slope) u a; elsewhere both
    y = max x_i:  the same, with a binary for each x_i, or pairwise: the greater of two, again and again
    cuts          for groups G of neurons of one hidden layer, with slopes from ascent:
                  sum over G of |w_j| (y_j - a_j x_j) <= T_G, the exact maximum over the space (`joint_bounds`)
    minimise      the margin logit[label] - logit[rival], for one rival or for whichever class[rival] is chosen;
                  or the number of swaps, the margin at most -TOLERANCE

l and u are exact for k swaps in the first layer (a selection), linear bounds deeper. What a neuron does not decide, or
decides alone, has no variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..bounds.selection import Places
from ..bounds.shallow_margin import is_shallow, shallow_margin
from ..bounds.swap_differences import Differences
from ..evaluation import values
from ..network import Network
from ..query import Query
from .affine_functions import Expressions
from .integer_program import Floats, Program, Variable
from .joint_cuts import joint_cuts
from .polarity import Polarity
from .program_reduction import Reduction, reduced
from .textbook_program import TOLERANCE
from .tight_rows import Options, Writer

BEST = Options()


@dataclass(frozen=True, eq=False)
class Tight:
    """A program for k swaps against these rivals (numbers in `query.rivals`), and how to read its solutions."""

    query: Query
    rivals: tuple[int, ...]
    k: int
    options: Options
    reduction: Reduction
    program: Program
    margins: Expressions
    """One for each of the rivals."""

    @property
    def settled(self) -> bool:
        """The bounds alone say that no sentence comes near to breaking the text: there is nothing to ask."""
        return bool((self.reduction.margins > TOLERANCE).all())

    @property
    def remark(self) -> str:
        return ", ".join(f"{count} swaps removed ({why})" for why, count in self.reduction.removed.items() if count)

    def sentence(self, solution: Floats) -> tuple[int, ...]:
        """The token ids of a solution."""
        swaps = (
            one.index
            for one, value in zip(self.program.variables, solution, strict=True)
            if one.kind == "swap" and value > 0.5
        )
        return self.query.space.sentence((position, token) for position, token in swaps)

    def holds(self, tokens: tuple[int, ...]) -> bool:
        """Whether the program has this sentence: its swaps were not removed, and are few enough."""
        swaps = self.query.space.swaps_of(tokens)
        return len(swaps) <= self.k and set(swaps) <= {v.index for v in self.program.variables if v.kind == "swap"}

    def assignment(self, tokens: tuple[int, ...]) -> Floats:
        """The values that the network itself gives to the variables for a sentence that it holds."""
        return assigned(self.query.network, self.program.variables, tokens, self.query, self.rivals)

    def get_error(self, tokens: tuple[int, ...]) -> float:
        """How far, for one sentence, the network is from satisfying the rows and the rows from giving its margins."""
        found = self.assignment(tokens)
        logits = values(self.query.network, np.array([tokens]))[len(self.query.network.nodes) - 1].reshape(-1)
        true = np.array([logits[self.query.label] - logits[self.query.rivals[rival]] for rival in self.rivals])
        apart = float(np.abs(self.margins.values(found) - true).max())
        if self.options.objective == "margin":
            apart = max(apart, abs(self.program.objective(found) - float(true.min())))
        rows = tuple(row for row in self.program.rows if row.name != "broken")
        return max(apart, replace(self.program, rows=rows).violation(found))


def tight(
    differences: Differences,
    rivals: Sequence[int],
    k: int,
    options: Options = BEST,
    known: Sequence[tuple[int, ...]] = (),
    low: int = 0,
) -> Tight:
    """`known`: sentences, of which the best that the program holds is where the solver starts.

    With objective "swaps", `low` swaps are known to be needed.
    """
    reduction = reduced(
        differences, tuple(rivals), k, TOLERANCE, probing=options.probing, domination=options.domination
    )
    # Nothing is left to ask about rivals that the bounds exclude.
    live = tuple(
        rival for rival, margin in zip(reduction.rivals, reduction.margins, strict=True) if margin <= TOLERANCE
    )
    asked = live or reduction.rivals[:1]
    writer = Writer(reduction, options, Polarity.of(differences.query, asked), inputs=options.inputs)
    margins = writer.margins(asked)
    if options.cuts and live and len(asked) == 1 and is_shallow(differences.query.network):
        shallow = shallow_margin(Places.of(reduction.differences), asked[0])
        writer.rows += joint_cuts(shallow, reduction.k, writer.neurons)
    program = writer.finished(margins, asked, max(low, 0))
    result = Tight(differences.query, asked, reduction.k, options, reduction, program, margins)
    if not options.start:
        return result
    starts = [result.assignment(tokens) for tokens in known if result.holds(tokens)]
    feasible = [start for start in starts if program.violation(start) <= TOLERANCE / 10]
    if not feasible:
        return result
    return replace(result, program=replace(program, start=min(feasible, key=program.objective)))


def assigned(
    network: Network, variables: Sequence[Variable], tokens: tuple[int, ...], query: Query, rivals: Sequence[int]
) -> Floats:
    """What the network gives to each variable, for one sentence."""
    nodes = network.nodes
    found = values(network, np.array([tokens], dtype=np.int64), wanted=range(len(nodes)))
    flat = {index: array.reshape(-1) for index, array in found.items()}
    logits = flat[len(nodes) - 1]
    margins = [float(logits[query.label] - logits[query.rivals[rival]]) for rival in rivals]
    result = np.zeros(len(variables))
    windows: dict[tuple[int, int], list[tuple[float, int]]] = {}
    chains: dict[tuple[int, int], float] = {}
    taken = False
    members = {index: flat[node.inputs[0]] for index, node in enumerate(nodes) if node.inputs}
    for column, variable in enumerate(variables):
        match variable.kind, variable.index:
            case "swap", (position, token):
                result[column] = tokens[position] == token
            case "input", (node, element):
                result[column] = members[node][element]
            case "relu" | "maximum", (node, element):
                result[column] = flat[node][element]
            case "positive", (node, element):
                result[column] = max(0.0, members[node][element])
            case "negative", (node, element):
                result[column] = max(0.0, -members[node][element])
            case "active", (node, element):
                result[column] = members[node][element] > 0
            case "largest", (node, element, place):
                x = members[node].reshape(nodes[node].size, -1)[element, place]
                windows.setdefault((node, element), []).append((float(x), column))
            case "pair", (node, element, first, place):
                window = members[node].reshape(nodes[node].size, -1)[element]
                before = chains.get((node, element), float(window[first]))
                chains[node, element] = result[column] = max(before, float(window[place]))
                taken = float(window[place]) > before
            case "taken", _:  # right after its pair
                result[column] = taken
            case "class", (rival,):
                best = int(np.argmin(margins))
                result[column] = query.rivals[rivals[best]] == rival
            case "margin", ():
                result[column] = min(margins)
    for window_columns in windows.values():
        result[max(window_columns)[1]] = 1.0
    return result
