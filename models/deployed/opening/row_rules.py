"""How sentences of a batch stand in a tensor, and what each operator of ONNX makes of it.

A tensor of a graph is one of three things, whatever the number B of sentences in the batch:

* *still*: the same for every B and all sentences. Constants are, and what is computed from them alone.
* *sized*: whole numbers a B + c, the same for all sentences: what Shape says, and sums and multiples of it.
  With a = 0 they are still.
* *rows* along an axis of `outer` x B x k places: the part [o, b, t] of that axis holds what is computed of
  sentence b by a function that knows neither B nor b nor any other sentence. Inputs are, along their first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
SIZES = (2, 3)
"""Of the two batches. 1 would be taken for an axis that is broadcast."""


class Mixed(Exception):
    """Why neighbours may matter."""


@dataclass(frozen=True)
class Still:
    pass


@dataclass(frozen=True)
class Sized:
    pass


@dataclass(frozen=True)
class Places:
    """Numbers from `step` b + `low` to `step` b + `high`; with `first`, only the first of each last axis is one.

    With the step 0 nothing is known of the numbers: how many they are may be asked, and nothing else.
    """

    step: int = 1
    low: int = 0
    high: int = 0
    first: bool = False


UNKNOWN = Places(0)


@dataclass(frozen=True)
class Rows:
    """With `places` it is no function of a sentence alone, and only by what gathers at these places it becomes one."""

    axis: int
    outer: int = 1
    places: Places | None = None


Kind = Still | Sized | Rows
STILL, SIZED = Still(), Sized()


@dataclass(frozen=True)
class Step:
    """A node, what its inputs are, and their sizes and numbers with 2 and with 3 sentences."""

    node: Any
    opset: int
    known: Mapping[str, Kind]
    shapes: tuple[Mapping[str, tuple[int, ...]], ...]
    numbers: tuple[Mapping[str, Numbers], ...]

    @property
    def operator(self) -> str:
        return str(self.node.op_type)

    @cached_property
    def kinds(self) -> list[Kind]:
        """Of its inputs; what is left out is still."""
        return [self.known[name] if name else STILL for name in self.node.input]

    @property
    def row(self) -> Rows:
        """The first input, where it alone may be of sentences."""
        return self.only(0)

    def only(self, *places: int) -> Rows:
        """What the one input of sentences is, which must be at one of these places; no other may be sized."""
        for place, kind in enumerate(self.kinds):
            if kind != STILL and place not in places:
                raise self.mixed(f"reads its input {place + 1} of sentences or of their number")
        rows = [kind for kind in self.kinds if kind != STILL]
        if len(rows) != 1 or not isinstance(rows[0], Rows):
            raise self.mixed("joins two inputs of sentences")
        return rows[0]

    def mixed(self, what: str) -> Mixed:
        return Mixed(f"{self.operator} {what}")

    def size(self, place: int, run: int = 0) -> tuple[int, ...]:
        return self.shapes[run][self.node.input[place]]

    def rank(self, place: int = 0) -> int:
        return len(self.size(place))

    def made(self, place: int = 0, run: int = 0) -> tuple[int, ...]:
        return self.shapes[run][self.node.output[place]]

    def attribute(self, name: str, default: Any = None) -> Any:
        import onnx

        found = next((one for one in self.node.attribute if one.name == name), None)
        return default if found is None else onnx.helper.get_attribute_value(found)

    def has(self, place: int) -> bool:
        return len(self.node.input) > place and bool(self.node.input[place])

    def pair(self, place: int) -> tuple[Numbers, Numbers]:
        """The numbers of an input that is still or sized, with 2 and with 3 sentences."""
        name = self.node.input[place]
        if isinstance(self.known[name], Rows) or name not in self.numbers[0]:
            raise self.mixed(f"is told by sentences what it does (input {place + 1})")
        first, second = (numbers[name] for numbers in self.numbers)
        return first, second

    def wholes(self, place: int, attribute: str) -> list[int] | None:
        """Still numbers that say how it is computed, from an input or, in older opsets, an attribute."""
        if not self.has(place):
            said = self.attribute(attribute)
            return None if said is None else [int(one) for one in np.atleast_1d(said)]
        if self.known[self.node.input[place]] != STILL:
            raise self.mixed(f"is told by the number of sentences what it does (input {place + 1})")
        return [int(one) for one in np.atleast_1d(self.pair(place)[0])]

    def grown(self, place: int = 0) -> tuple[int, int]:
        """Of an output, the one axis that grows with the batch, and the places of it for each sentence."""
        first, second = self.made(place), self.made(place, 1)
        if len(first) == len(second):
            axes = [axis for axis, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
            if len(axes) == 1:
                each, rest = divmod(first[axes[0]], SIZES[0])
                if not rest and second[axes[0]] == each * SIZES[1]:
                    return axes[0], each
        raise self.mixed(f"makes {list(first)} of {SIZES[0]} sentences and {list(second)} of {SIZES[1]}")

    def seen(self, name: str, kind: Kind) -> Kind:
        """The same, if it is as the two runs have it."""
        first, second = (shapes[name] for shapes in self.shapes)
        if isinstance(kind, Rows):
            axis, outer = kind.axis, kind.outer
            alike = 0 <= axis < len(first) == len(second)
            grows = alike and first[axis] % (SIZES[0] * outer) == 0 < first[axis]
            rest = first[:axis] + first[axis + 1 :] == second[:axis] + second[axis + 1 :]
            if not (grows and rest and second[axis] * SIZES[0] == first[axis] * SIZES[1]):
                raise self.mixed(f"makes {list(first)} of {SIZES[0]} sentences and {list(second)} of {SIZES[1]}")
        elif first != second:
            raise self.mixed("makes more of more sentences")
        elif kind == SIZED and np.array_equal(self.numbers[0][name], self.numbers[1][name]):
            return STILL
        return kind


Made = Kind | tuple[Kind, ...]
Rule = Callable[[Step], Made]


def rule_of(step: Step) -> Made:
    """What its outputs are."""
    if step.operator == "If":
        return chosen(step)
    kinds = step.kinds
    if all(kind == STILL for kind in kinds) and step.operator not in CHANCE:
        return STILL
    if any(isinstance(kind, Rows) and kind.places for kind in kinds) and step.operator not in OF_PLACES:
        raise step.mixed("reads the places of sentences in the batch")
    if any(isinstance(kind, Rows) for kind in kinds):
        return RULES[step.operator](step)
    if step.operator not in OF_SIZES:
        raise step.mixed("reads the number of sentences")
    return OF_SIZES[step.operator](step)


def chosen(step: Step) -> Made:
    """What the branch makes that is taken for every B: one operator, beside constants."""
    import onnx

    if step.kinds != [STILL]:
        raise step.mixed("is told by sentences or their number what it does")
    branch = step.attribute("then_branch" if step.pair(0)[0].item() else "else_branch")
    constants = [one for one in branch.node if one.op_type == "Constant" and one.attribute[0].name == "value"]
    others = [one for one in branch.node if one not in constants]
    inner = {name for one in branch.node for name in one.output}
    if len(others) != 1 or list(others[0].output) != [branch.output[0].name] or inner & set(step.known):
        raise step.mixed("takes a branch of several operators")
    if others[0].op_type not in RULES or others[0].domain not in ("", "ai.onnx"):
        raise Mixed(f"operator {others[0].op_type} is not known to keep sentences apart")
    told = {one.output[0]: onnx.numpy_helper.to_array(one.attribute[0].t) for one in constants}
    shapes = {name: value.shape for name, value in told.items()}
    first, second = ({**sizes, **shapes, others[0].output[0]: step.made(0, k)} for k, sizes in enumerate(step.shapes))
    numbers = ({**step.numbers[0], **told}, {**step.numbers[1], **told})
    kinds = {**step.known, **dict.fromkeys(told, STILL)}
    return rule_of(Step(others[0], step.opset, kinds, (first, second), numbers))


def aligned(step: Step, places: Iterable[int] | None = None, rank: int | None = None) -> Rows:
    """Inputs that are broadcast: all that are rows must be so along the same axis of what comes out."""
    rank = len(step.made()) if rank is None else rank
    found: set[Rows] = set()
    for place in range(len(step.kinds)) if places is None else places:
        match step.kinds[place] if place < len(step.kinds) else STILL:
            case Rows(axis, outer):
                found.add(Rows(axis + rank - step.rank(place), outer))
            case Sized():
                raise step.mixed("joins sentences and the number of them")
    if len(found) != 1:
        raise step.mixed("lays sentences beside others")
    return found.pop()


def each_number(step: Step) -> Rows:
    rows = step.row if len(step.kinds) == 1 else aligned(step)
    for place, kind in enumerate(step.kinds):
        if isinstance(kind, Rows) and kind.places:
            return Rows(rows.axis, rows.outer, moved_places(step, kind.places, place))
    return rows


def moved_places(step: Step, places: Places, place: int) -> Places:
    """Multiplied by, or added to, still numbers; or beside others, as exporters ask how large both together are."""
    if step.operator == "Max":
        return UNKNOWN
    if step.operator == "Identity" or (step.operator == "Cast" and keeps_wholes(step)):
        return places
    if step.operator in ("Add", "Mul"):
        numbers = step.pair(1 - place)[0]
        if step.kinds[1 - place] == STILL and numbers.size and numbers.dtype.kind == "i" and not places.first:
            low, high = int(numbers.min()), int(numbers.max())
            if step.operator == "Add":
                return Places(places.step, places.low + low, places.high + high)
            if low == high > 0:
                return Places(places.step * low, places.low * low, places.high * low)
    raise step.mixed("reads the places of sentences in the batch")


def typed_alike(step: Step) -> Kind:
    """The first input, in the type of the second, of which nothing else is read."""
    if step.kinds[0] == SIZED:
        raise step.mixed("reads the number of sentences")
    return step.kinds[0]


def keeps_wholes(step: Step) -> bool:
    """Whether a Cast changes no size and no place."""
    import onnx

    return step.attribute("to") in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


# --- along axes ---------------------------------------------------------------------------------------------------


def off(step: Step, axes: Iterable[int], rows: Rows | None = None) -> Rows:
    """What is computed along these axes, none of which may be that of the batch."""
    rows = step.row if rows is None else rows
    if rows.axis in {axis % step.rank() for axis in axes}:
        raise step.mixed("over the batch")
    return rows


def reduced(step: Step) -> Rows:
    axes = step.wholes(1, "axes")
    if not axes:
        if axes is not None and step.attribute("noop_with_empty_axes", 0):
            return step.row
        axes = list(range(step.rank()))
    rows = off(step, axes, step.only(0))
    if step.attribute("keepdims", 1):
        return rows
    return Rows(rows.axis - sum(axis % step.rank() < rows.axis for axis in set(axes)), rows.outer)


def greatest_place(step: Step) -> Rows:
    axis = step.attribute("axis", 0) % step.rank()
    rows = off(step, [axis])
    return rows if step.attribute("keepdims", 1) else Rows(rows.axis - (axis < rows.axis), rows.outer)


def softmax(step: Step) -> Rows:
    """Before opset 13, over all axes from one on."""
    if step.opset >= 13:
        return off(step, [step.attribute("axis", -1)])
    return off(step, range(step.attribute("axis", 1) % step.rank(), step.rank()))


def layer_norm(step: Step) -> Rows:
    return off(step, range(step.attribute("axis", -1) % step.rank(), step.rank()))


def along_axis(default: int) -> Rule:
    return lambda step: off(step, [step.attribute("axis", default)])


def cumulated(step: Step) -> Rows:
    return off(step, step.wholes(1, "axis") or [])


def triangle(step: Step) -> Rows:
    return off(step, (-2, -1))


def mean_variance(step: Step) -> Rows:
    return off(step, step.attribute("axes", (0, 2, 3)))


def one_hot(step: Step) -> Rows:
    axis = step.attribute("axis", -1) % len(step.made())
    return Rows(step.row.axis + (axis <= step.row.axis), step.row.outer)


def batch_norm(step: Step) -> Rows:
    if step.attribute("training_mode", 0) or len([name for name in step.node.output if name]) > 1:
        raise step.mixed("trains on the batch")
    return off(step, [1])


def dropout(step: Step) -> Rows:
    if step.has(2) and step.wholes(2, "") != [0]:
        raise step.mixed("drops at random")
    return step.row


def scaled(step: Step) -> Rows:
    """By scales and zero points that are still."""
    return step.row


def first_axis(step: Step) -> Rows:
    """Convolutions, pools, norms of channels: each along the first axis by itself."""
    if step.row.axis:
        raise step.mixed("over the batch")
    if step.operator == "MaxPool" and len([name for name in step.node.output if name]) > 1:
        raise step.mixed("counts places from the first sentence on")
    return step.row


# --- products and recurrent layers --------------------------------------------------------------------------------


def product(step: Step, left: int = 0, right: int = 1) -> Rows:
    """Of matrices, as numpy's matmul: what is summed over may not be the batch."""
    a, b, rank = step.rank(left), step.rank(right), len(step.made())
    found: set[Rows] = set()
    for place, kind in enumerate(step.kinds):
        if kind == STILL:
            continue
        if not isinstance(kind, Rows) or place not in (left, right):
            raise step.mixed(f"reads its input {place + 1} of sentences or of their number")
        axis, own = kind.axis, a if place == left else b
        if axis == (a - 1 if place == left else max(0, b - 2)):
            raise step.mixed("sums over the batch")
        beyond = max(a, b) - own
        columns = place == right and axis == b - 1
        found.add(Rows(rank - 1 if columns else axis + beyond, kind.outer))
    if len(found) != 1:
        raise step.mixed("multiplies sentences by others")
    return found.pop()


def scaled_product(step: Step) -> Rows:
    return product(step, 0, 3)


def general_product(step: Step) -> Rows:
    found: set[Rows] = set()
    for place, (name, free) in enumerate((("transA", 0), ("transB", 1))):
        kind = step.kinds[place]
        if isinstance(kind, Rows):
            if kind.axis != (1 - free if step.attribute(name, 0) else free):
                raise step.mixed("sums over the batch")
            found.add(Rows(free, kind.outer))
        elif kind != STILL:
            raise step.mixed("reads the number of sentences")
    if step.has(2) and step.kinds[2] != STILL:
        found.add(aligned(step, [2]))
    if len(found) != 1:
        raise step.mixed("multiplies sentences by others")
    return found.pop()


def summed_letters(step: Step) -> Rows:
    equation = step.attribute("equation", b"").decode().replace(" ", "")
    read, _, answer = equation.partition("->")
    if "." in equation or "->" not in equation:
        raise step.mixed("has letters that are not written")
    found: set[tuple[str, int]] = set()
    for letters, kind in zip(read.split(","), step.kinds, strict=True):
        if isinstance(kind, Rows):
            found.add((letters[kind.axis], kind.outer))
            if letters.count(letters[kind.axis]) > 1:
                raise step.mixed("over the batch")
        elif kind != STILL:
            raise step.mixed("reads the number of sentences")
    if len(found) != 1:
        raise step.mixed("multiplies sentences by others")
    ((letter, outer),) = found
    if letter not in answer:
        raise step.mixed("sums over the batch")
    return Rows(answer.index(letter), outer)


def recurrent(step: Step) -> tuple[Kind, ...]:
    """Reads [words, batch, numbers]."""
    if step.attribute("layout", 0):
        raise step.mixed("of batches before words is not known to keep sentences apart")
    given = {0: 1, 4: 0, 5: 1, 6: 1}  # X, sequence_lens, initial_h, initial_c
    outers: set[int] = set()
    for place, kind in enumerate(step.kinds):
        if isinstance(kind, Rows) and given.get(place) == kind.axis:
            outers.add(kind.outer)
        elif kind != STILL:
            raise step.mixed("over the batch")
    if len(outers) != 1:
        raise step.mixed("lays sentences beside others")
    (outer,) = outers
    return Rows(2, outer), Rows(1, outer), Rows(1, outer)


# --- what only moves numbers --------------------------------------------------------------------------------------


def reshaped(step: Step) -> Rows:
    """In the same order, so as many numbers stand before the batch as did.

    The one size that grows is B times a number, the others do not change: they are still or a B + c with a = 0, or
    what is left for -1.
    """
    if step.operator == "Squeeze" and step.wholes(1, "axes") is None:
        raise step.mixed("without axes leaves out that of a single sentence")
    rows = step.kinds[0]
    if not isinstance(rows, Rows) or any(isinstance(kind, Rows) for kind in step.kinds[1:]):
        raise step.mixed("is told by sentences what it does")
    before = prod(step.size(0)[: rows.axis]) * rows.outer
    axis, each = step.grown()
    outer, rest = divmod(before, prod(step.made()[:axis]))
    if rest or each % outer:
        raise step.mixed("parts a sentence among others")
    if step.operator == "Reshape":
        told(step, 1)
    if rows.places and (rows.places.first or outer != 1):
        raise step.mixed("reads the places of sentences in the batch")
    return Rows(axis, outer, rows.places)


def told(step: Step, place: int) -> None:
    """Sizes that grow are those that come out, for every B: none is an odd way to say -1 or 0 with 2 sentences."""
    first, second = (numbers.tolist() for numbers in step.pair(place))
    made = [list(step.made(0, run))[-len(first) :] for run in range(2)]
    for one, other, *out in zip(first, second, *made, strict=True):
        if one != other and [one, other] != out:
            raise step.mixed("is told by the number of sentences what it does")


def transposed(step: Step) -> Rows:
    order = step.attribute("perm", list(reversed(range(step.rank()))))
    return Rows(list(order).index(step.row.axis), step.row.outer)


def expanded(step: Step) -> Rows:
    """Broadcast to sizes of which only that of the batch grows."""
    rows, (axis, _) = step.kinds[0], step.grown()
    told(step, 1)
    if isinstance(rows, Rows):
        if (rows.places and rows.places.first) or rows.axis + len(step.made()) - step.rank() != axis:
            raise step.mixed("repeats sentences for others")
        return Rows(axis, rows.outer, rows.places)
    return Rows(axis)


def tiled(step: Step) -> Rows:
    rows, (axis, _) = step.kinds[0], step.grown()
    step.pair(1)
    if isinstance(rows, Rows) and (axis != rows.axis or step.made()[axis] != step.size(0)[axis]):
        raise step.mixed("repeats sentences for others")
    return rows if isinstance(rows, Rows) else Rows(axis)


def padded(step: Step) -> Rows:
    rows, pads = step.row, step.wholes(1, "pads")
    axes = step.wholes(3, "") or list(range(step.rank()))
    for axis, before, after in zip(axes, pads or [], (pads or [])[len(axes) :], strict=False):
        if axis % step.rank() == rows.axis and (before or after):
            raise step.mixed("over the batch")
    return rows


def sliced(step: Step) -> Rows:
    """Not along the batch, or all of it, forwards."""
    rows = step.kinds[0]
    if not isinstance(rows, Rows):
        raise step.mixed("is told by sentences what it does")
    if not step.has(1):  # opsets before 10
        pairs = [(np.array(step.attribute(name)),) * 2 for name in ("starts", "ends")]
        axes, steps = step.attribute("axes"), None
    else:
        pairs, axes, steps = [step.pair(1), step.pair(2)], step.wholes(3, ""), step.wholes(4, "")
    count = len(pairs[0][0])
    axes, steps = axes or list(range(count)), steps or [1] * count
    for place, (axis, stride) in enumerate(zip(axes, steps, strict=True)):
        (start, start_of_more), (end, end_of_more) = ((int(one[place]), int(two[place])) for one, two in pairs)
        if axis % step.rank() != rows.axis:
            if (start, end) != (start_of_more, end_of_more):
                raise step.mixed("is told by the number of sentences what it does")
            continue
        whole = (end, end_of_more) == tuple(step.size(0, run)[rows.axis] for run in range(2))
        if start or start_of_more or stride != 1 or not (whole or end == end_of_more >= 2**31 - 1):
            raise step.mixed("over the batch")
    return rows


def split(step: Step) -> Rows:
    return off(step, [step.attribute("axis", 0)], step.only(0))


def joined(step: Step) -> Rows:
    axis = step.attribute("axis", 1) % len(step.made())
    found = {Rows(kind.axis, kind.outer) for kind in step.kinds if isinstance(kind, Rows)}
    places = [kind.places if isinstance(kind, Rows) else None for kind in step.kinds]
    if len(found) != 1 or not all(isinstance(kind, Rows) for kind in step.kinds):
        raise step.mixed("lays sentences beside others")
    rows = found.pop()
    if rows.axis == axis:
        raise step.mixed("over the batch")
    if not any(places):
        return rows
    if any(places[1:]) or places[0] != Places() or axis != len(step.made()) - 1 or step.size(0)[-1] != 1:
        raise step.mixed("reads the places of sentences in the batch")
    return Rows(rows.axis, rows.outer, Places(first=True))


def gathered(step: Step) -> Rows:
    data, indices = step.kinds
    axis = step.attribute("axis", 0) % step.rank()
    if isinstance(data, Rows) and data.places:
        raise step.mixed("reads the places of sentences in the batch")
    if isinstance(indices, Rows) and (places := indices.places):
        each = step.size(0)[axis] // SIZES[0]
        if data != Rows(axis) or places.first or places.step != each or places.low < 0 or places.high >= each:
            raise step.mixed("over the batch")
        return Rows(axis + indices.axis, indices.outer)
    rows = step.only(0, 1)
    if step.kinds[1] == rows:  # rows of a table
        return Rows(axis + rows.axis, rows.outer)
    off(step, [axis], rows)
    return Rows(rows.axis if rows.axis < axis else rows.axis - 1 + step.rank(1), rows.outer)


def gathered_elements(step: Step) -> Rows:
    first, second = step.kinds
    if first != second or not isinstance(first, Rows) or step.size(0)[first.axis] != step.size(1)[first.axis]:
        raise step.mixed("lays sentences beside others")
    return off(step, [step.attribute("axis", 0)], first)


def gathered_slices(step: Step) -> Rows:
    """By places whose first is that of the sentence itself, or of a table that is still."""
    data, places = step.kinds
    shared, own = step.attribute("batch_dims", 0), isinstance(data, Rows) and data.places
    if isinstance(places, Rows) and places.axis < step.rank(1) - 1 and not own:
        if data == STILL and not shared and not places.places:
            return places
        same = isinstance(data, Rows) and (data.axis, data.outer) == (places.axis, places.outer)
        if same and places.axis < shared and not places.places:
            return places
        whole = data == Rows(0) and step.size(0)[0] == SIZES[0]
        known = places.places == Places(first=True) or (places.places == Places() and step.size(1)[-1] == 1)
        if whole and known and not shared:
            return Rows(places.axis, places.outer)
    raise step.mixed("over the batch")


def of_shape(step: Step) -> Sized:
    return SIZED


def refused(step: Step) -> Rows:
    raise step.mixed("is told by sentences what it does")


# --- what sizes say -----------------------------------------------------------------------------------------------


def moved_sizes(step: Step) -> Sized:
    """As it is told by still numbers."""
    if any(kind != STILL for kind in step.kinds[1:]) and step.operator != "Concat":
        raise step.mixed("is told by the number of sentences what it does")
    return SIZED


def cast_sizes(step: Step) -> Sized:
    if not keeps_wholes(step):
        raise step.mixed("reads the number of sentences")
    return SIZED


def lines(step: Step, place: int) -> tuple[Numbers, Numbers]:
    """a and c of numbers a B + c."""
    first, second = (np.asarray(numbers) for numbers in step.pair(place))
    if first.dtype.kind not in "iu" or first.shape != second.shape:
        raise step.mixed("reads the number of sentences")
    slope = second.astype(np.int64) - first
    return slope, first - SIZES[0] * slope


def multiplied_sizes(step: Step) -> Sized:
    (one, _), (other, _) = lines(step, 0), lines(step, 1)
    if np.any((one != 0) & (other != 0)):
        raise step.mixed("multiplies the number of sentences by itself")
    return SIZED


def divided_sizes(step: Step) -> Sized:
    (slope, constant), (varies, divisor) = lines(step, 0), lines(step, 1)
    if np.any(varies) or np.any(divisor == 0) or np.any(slope % divisor) or np.any(constant % divisor):
        raise step.mixed("divides the number of sentences")
    return SIZED


def compared_sizes(step: Step) -> Still:
    """With the same answer for every B from 1 on: a B + c never changes between less than, equal to and more than 0."""
    (one, low), (other, high) = lines(step, 0), lines(step, 1)
    slope, constant = one - other, low - high
    if np.any((slope != 0) & (np.sign(slope + constant) != np.sign(slope))):
        raise step.mixed("compares the number of sentences")
    return STILL


def chosen_sizes(step: Step) -> Sized:
    if step.kinds[0] != STILL:
        raise step.mixed("reads the number of sentences")
    return SIZED


def counted(step: Step) -> Rows:
    """0, 1, ..., B - 1."""
    if [int(one.item()) for place in (0, 1, 2) for one in step.pair(place)] != [0, 0, *SIZES, 1, 1]:
        raise step.mixed("counts the sentences")
    return Rows(0, places=Places())


def made_alike(step: Step) -> Rows:
    return Rows(step.grown()[0])


EACH_NUMBER = (
    *("Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd", "BitwiseNot"),
    *("BitwiseOr", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu", "Equal", "Erf"),
    *("Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf"),
    *("IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg"),
    *("Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin"),
    *("Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where"),
    *("Xor"),
)
REDUCED = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
POOLED = ("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool")
RULES: dict[str, Rule] = {
    **dict.fromkeys(EACH_NUMBER, each_number),
    "CastLike": typed_alike,
    **dict.fromkeys((f"Reduce{name}" for name in REDUCED), reduced),
    **dict.fromkeys(("ArgMax", "ArgMin"), greatest_place),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), softmax),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_norm),
    "LpNormalization": along_axis(-1),
    "TopK": along_axis(-1),
    "MeanVarianceNormalization": mean_variance,
    "CumSum": cumulated,
    "Trilu": triangle,
    "OneHot": one_hot,
    "BatchNormalization": batch_norm,
    "Dropout": dropout,
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), scaled),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization", "LRN"), first_axis),
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", *POOLED), first_axis),
    **dict.fromkeys(("MatMul", "MatMulInteger"), product),
    "QLinearMatMul": scaled_product,
    "Gemm": general_product,
    "Einsum": summed_letters,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), recurrent),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), reshaped),
    "Transpose": transposed,
    "Expand": expanded,
    "Tile": tiled,
    "Pad": padded,
    "Slice": sliced,
    "Split": split,
    "Concat": joined,
    "Gather": gathered,
    "GatherElements": gathered_elements,
    "GatherND": gathered_slices,
    **dict.fromkeys(("Shape", "Size"), of_shape),
    "If": chosen,
    **dict.fromkeys(("Constant", "ConstantOfShape", "Range", "EyeLike"), refused),
}
"""What comes out where some input is rows."""
OF_SIZES: dict[str, Rule] = {
    **dict.fromkeys(("Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Identity", "Concat", "Split"), moved_sizes),
    **dict.fromkeys(("Add", "Sub", "Neg"), of_shape),
    **dict.fromkeys(("Shape", "Size"), lambda step: STILL),
    **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"), compared_sizes),
    "Cast": cast_sizes,
    "Mul": multiplied_sizes,
    "Div": divided_sizes,
    "Where": chosen_sizes,
    "Range": counted,
    "ConstantOfShape": made_alike,
    "Expand": expanded,
    "Tile": tiled,
}
"""What comes out where none is rows, and some are sized."""
TOLD = frozenset({*(f"Reduce{name}" for name in REDUCED), "CumSum", "Dropout", "Reshape", "Squeeze", "Unsqueeze"}) | {
    *("Expand", "Tile", "Pad", "Slice"),
}
"""Whose further inputs say how they compute."""
OF_PLACES = frozenset(
    {"Add", "Cast", "Concat", "Expand", "Gather", "GatherND", "Identity", "Max", "Mul", "Reshape", "Shape"}
) | {
    *("Squeeze", "Unsqueeze"),
}
CHANCE = frozenset({"Dropout", "BatchNormalization"})
