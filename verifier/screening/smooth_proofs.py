"""Proofs about smooth networks, screened: the intervals of FORMAT.md, section 15, held by ends in float64.

What is accepted here check.py accepts: every end is moved outwards by more than float64 may round, and by the unit of
the checker's precision, so that its intervals lie within.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.expansions.expanded import BITS as EXPANDED_BITS
from swapproof.encodings.expansions.expanded import expanded
from swapproof.encodings.expansions.multipliers import Unfit as NotExpanded
from swapproof.encodings.expansions.ordered_chains import Chain
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import Ends, KernelEnds
from swapproof.encodings.regions.assignments import Choices
from swapproof.encodings.regions.box_runs import Remembered, Segment
from swapproof.encodings.regions.boxes import boxed, segments_of
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region import Question
from swapproof.encodings.regions.region_search import CLEAR, segments_used
from swapproof.encodings.regions.shared_tables import Stopped
from swapproof.encodings.sequences.sentence_margins import margins_of
from swapproof.proofs.attention_leaf import Attention
from swapproof.proofs.exact_network import Network
from swapproof.proofs.writing import certificate
from swapproof.proofs.writing.certificate import encode_tree
from swapproof.proofs.writing.errors import BadInput
from swapproof.proofs.writing.tree_reader import decode_tree

from ..attending.quick_bound import BITS as QUICK_BITS
from ..attending.quick_bound import Unfit
from .exact_leaf import checked_network, leaf_of, masks_of, quick_leaf_of
from .form.unsure import Unsure

BITS, MOST_BITS = 32, 64
"""The precision where none is set, and that of witnesses."""
ROWS, MOST = 60_000, 2_000_000
"""Sentences that are evaluated at once, and in all."""


def screen_smooth(query: Query, tree: bytes, sizes: Sequence[int], swaps: int, level: str, stop: float) -> None:
    """Raises Unsure unless the tree surely proves that at most so many swaps change nothing."""
    question = question_of(query)
    if level == "kernel" and not canonical_of(query.network).float32:
        raise Unsure("level kernel of this network")
    if list(sizes) != [len(own) for own in question.tokens]:
        raise Unsure("words with one option")
    try:
        root = decode_tree(tree, sizes, query.rivals)
    except BadInput as error:
        raise Unsure(str(error)) from None
    if encode_tree(root, sizes, query.rivals) != tree:
        raise Unsure("a tree that is not written as trees are")
    whole = Choices(tuple(tuple(range(size)) for size in sizes), swaps)
    Screened(query, question, level, stop).check(root, whole)


class Screened:
    """One proof: its leaves in order."""

    def __init__(self, query: Query, question: Question, level: str, stop: float) -> None:
        self.query, self.question, self.stop = query, question, stop
        self.kind = KernelEnds if level == "kernel" else Ends
        self.ends: dict[int, Ends] = {}
        self.leaves: dict[int, Attention] = {}
        self.remembered: dict[tuple[tuple[Segment, ...], int], Remembered] = {}
        self.evaluated = 0

    @cached_property
    def plainly(self) -> Question:
        """Evaluated element by element, as check.py does: by differences other numbers are rounded to its units, so
        that ends near 0 may be better than its own."""
        return replace(self.question, layout=None)

    @cached_property
    def is_small(self) -> bool:
        """Whether the text itself has an interval, also of what layouts leave out: there check.py meets its limit."""
        if self.question.layout is None:
            return True
        _, ends = margins_of(self.plainly, self.plainly.whole(0), self.arithmetic(BITS))
        return bool(np.isfinite(ends).all())

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return segments_of(self.question)

    @property
    def late(self) -> bool:
        return time.monotonic() > self.stop

    def check(self, root: certificate.Node, whole: Choices) -> None:
        waiting = [(root, whole, BITS, frozenset(self.query.rivals))]
        while waiting:
            node, choices, bits, rivals = waiting.pop()
            if self.late:
                raise Unsure("out of time")
            match node:
                case certificate.Precision(inner_bits, inner):
                    self.arithmetic(inner_bits)  # refused even where another is set below
                    waiting.append((inner, choices, inner_bits, rivals))
                case certificate.Words(word, options, left, right):
                    own = frozenset(choices.options[word])
                    if not options < own or not options:
                        raise Unsure("a split that splits nothing")
                    waiting.append((right, limited(choices, word, own - options), bits, rivals))
                    waiting.append((left, limited(choices, word, options), bits, rivals))
                case certificate.Rivals(named, left, right):
                    if not named < rivals or not named:
                        raise Unsure("a split of rivals that splits nothing")
                    waiting.append((right, choices, bits, rivals - named))
                    waiting.append((left, choices, bits, named))
                case certificate.Enumerate():
                    self.enumerate(choices, bits, rivals)
                case certificate.Boxes(segments):
                    self.box(segments, choices, bits, rivals)
                case certificate.Attention():
                    self.attend(choices, bits, rivals)
                case certificate.Expansion():
                    self.expand(node, choices, bits, rivals)
                case _:
                    raise Unsure(f"{type(node).__name__} in a smooth network")

    def arithmetic(self, bits: int) -> Ends:
        if not 16 <= bits <= MOST_BITS:
            raise Unsure(f"precision {bits}")
        return self.ends.setdefault(bits, self.kind(2.0**-bits))

    def columns(self, rivals: frozenset[int]) -> list[int]:
        return [column for column, rival in enumerate(self.query.rivals) if rival in rivals]

    def enumerate(self, choices: Choices, bits: int, rivals: frozenset[int]) -> None:
        """Regions that are too large to be evaluated at once are cut by words."""
        count = choices.count()
        if count == 0:
            return
        free = [word for word in choices.moving if len(choices.options[word]) > 1]
        if count > ROWS and free:
            word = max(free, key=lambda w: len(choices.options[w]))
            own = choices.options[word]
            for part in (own[:1], own[1:]):
                self.enumerate(limited(choices, word, frozenset(part)), bits, rivals)
            return
        self.evaluated += count
        if self.evaluated > MOST:
            raise Unsure(f"more than {MOST} sentences")
        if not self.is_small:
            raise Unsure("numbers that may be too large, of which nothing comes")
        try:
            rows, ends = margins_of(self.question, choices, self.arithmetic(bits), lambda: self.late)
            near = ~(ends[:, 0][:, self.columns(rivals)] > CLEAR * max(1.0, 2.0 ** (BITS - bits))).all(axis=1)
            if self.question.layout is not None and near.any():
                given = choices, self.arithmetic(bits), lambda: self.late, rows.rows[near]
                ends[near] = margins_of(self.plainly, *given)[1]
        except Stopped:
            raise Unsure("out of time") from None
        if not (ends[:, 0][:, self.columns(rivals)] > 0).all():
            raise Unsure(f"an enumerated sentence: {ends[:, 0].min():.3g}")

    def box(self, segments: Sequence[certificate.Segment], choices: Choices, bits: int, rivals: frozenset[int]) -> None:
        if choices.count() == 0:
            return
        parts = tuple(Segment(s.first, s.first + s.layers, s.word) for s in segments)
        program = self.question.program
        for part, after in zip(parts, (*parts[1:], None)[: len(parts)], strict=True):
            end = program.layers if after is None else min(after.first, program.layers)
            if not (part.first < part.end <= end and part.word < len(choices.options)):
                raise Unsure("segments that are not in order")
            if any(len(program.pieces_of[layer]) != 1 for layer in range(part.first, part.end)):
                raise Unsure("segments that are not screened")
            if not all(self.read_apart(number, part, choices) for number in self.question.tail.through):
                raise Unsure("a segment that reads what it must not")
        if parts == segments_used(self.question, choices, self.segments):
            parts = self.segments  # those of words that stay say nothing
        if (parts, bits) not in self.remembered:
            self.remembered[parts, bits] = Remembered(self.question, parts, self.arithmetic(bits))
        try:
            margins = boxed(choices, self.remembered[parts, bits]).margins[choices.swaps]
        except KeyError:
            raise Unsure("a segment that reads what it must not") from None
        if not (margins[self.columns(rivals)] > 0).all():
            raise Unsure(f"a leaf of boxes: {margins.min():.3g}")

    def expand(self, node: certificate.Expansion, choices: Choices, bits: int, rivals: frozenset[int]) -> None:
        """By the bound of the leaf in float64, where it is clear."""
        if choices.count() == 0:
            return
        program = self.question.program
        layers = [piece.layer for piece in program.pieces]
        chains = [Chain(each.first, each.layers, each.descending) for each in node.chains]
        for chain, after in zip(chains, (*chains[1:], None)[: len(chains)], strict=True):
            end = program.layers if after is None else min(after.first, program.layers)
            if not chain.first < chain.first + chain.layers <= end:
                raise Unsure("chains that are not in order")
            if any(self.reads_around(number) for number in self.question.tail.through if layers[number] in chain):
                raise Unsure("a chain that is not screened")
        if bits < EXPANDED_BITS:
            raise Unsure(f"an expansion at a precision of {bits} bits")
        try:
            found = expanded(self.question, choices, chains, node.reach, self.arithmetic(bits)).margins[-1]
        except NotExpanded as error:
            raise Unsure(str(error)) from None
        if not (found[self.columns(rivals)] > CLEAR).all():
            raise Unsure(f"a leaf of expansion: {found.min():.3g}")

    def reads_around(self, number: int) -> bool:
        """Whether a piece may read what depends on fewer words than all but one of its own, as a mean over steps."""
        reached, reads = self.question.reached, self.question.program.reads[number]
        return any(len(reached[number] - reached[source]) > 1 for source in reads)

    def attend(self, choices: Choices, bits: int, rivals: frozenset[int]) -> None:
        """By the bound of the leaf in float64 where it is clear, else by the checker's own leaf."""
        if choices.count() == 0:
            return
        network = checked_network(self.query.network)
        if network is None or self.kind is KernelEnds:
            raise Unsure("a leaf of attention at another level, or without a canonical network")
        if bits >= QUICK_BITS and self.attends_clearly(network, choices, rivals):
            return
        if bits not in self.leaves:
            self.leaves[bits] = leaf_of(self.query, network, bits, self.stop)
        if not self.leaves[bits].proved(masks_of(choices.options), choices.swaps, sorted(rivals)):
            raise Unsure("a leaf of attention")

    def attends_clearly(self, network: Network, choices: Choices, rivals: frozenset[int]) -> bool:
        try:
            quick = quick_leaf_of(self.query, network)
            return all(quick.bound(choices.options, choices.swaps, rival).least > CLEAR for rival in sorted(rivals))
        except Unfit:
            return False

    def read_apart(self, number: int, part: Segment, choices: Choices) -> bool:
        """Whether a piece, if it is of a segment, reads no more that depends on its word than it may."""
        question, program = self.question, self.question.program
        if not part.first <= program.pieces[number].layer < part.end:
            return True
        for source in program.reads[number]:
            words, below = question.reached[source] & choices.moving, program.pieces[source]
            inside = not below.affine and part.first <= below.layer < part.end
            if part.word in words and not inside and not (below.affine and len(words) == 1):
                return False
        return True


def limited(choices: Choices, word: int, options: frozenset[int]) -> Choices:
    kept = tuple(option for option in choices.options[word] if option in options)
    return replace(choices, options=(*choices.options[:word], kept, *choices.options[word + 1 :]))


def screen_witness(query: Query, swaps: Sequence[tuple[int, int]], levels: Collection[str]) -> None:
    """Raises Unsure unless in the sentence with these (position, token) swaps some rival surely wins at all levels."""
    question = replace(question_of(query), layout=None)
    if "float32" in levels or ("kernel" in levels and not canonical_of(query.network).float32):
        raise Unsure("a level that this network has not")
    options = [(0,)] * len(question.tokens)
    for position, token in swaps:
        word = question.word_at[position]
        options[word] = (question.tokens[word].index(token),)
    alone = Choices(tuple(options), len(options))
    for level, kind in (("real", Ends), ("kernel", KernelEnds)):
        if level in levels:
            _, ends = margins_of(question, alone, kind(2.0**-MOST_BITS))
            if not (ends[0, 1] < 0).any():
                raise Unsure(f"the witness at level {level}")
