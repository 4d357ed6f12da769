"""What of a smooth network is computed from which words: its elements in blocks (FORMAT.md, section 15.4: W).

    blocks = Blocks(network, words)                    words: the position each starts at, and its options

This file is trusted, as check.py is. Standard library only; there are no numbers here, and nothing is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from itertools import count, groupby
from operator import or_
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from . import exact_network as networks
else:
    networks = sys.modules["exact_network"]

EXP = 1
"""The function of a curve exp (FORMAT section 4.3)."""


class Block:
    """Elements start, ..., stop - 1 of one layer that are computed from the same words (a bit for each).

    Of layers affine in the words, and of the constants, only elements of the cut are in blocks. `sources` are the
    blocks that it reads, by number; `outside` is whether some block with other words reads it, `summed` whether a layer
    adds its elements up.
    """

    def __init__(self, number: int, layer: networks.Layer, start: int, stop: int, words: int) -> None:
        self.number, self.layer, self.start, self.stop, self.words = number, layer, start, stop, words
        self.order = [i for i in range(words.bit_length()) if words >> i & 1]
        self.sources: list[int] = []
        self.outside = self.summed = False


def words_of_elements(network: networks.Network, words: Sequence[tuple[int, Sequence[Any]]]) -> list[int]:
    """For every element the words that it is computed from, a bit for each."""
    at = {p: 1 << i for i, (start, options) in enumerate(words) for p in range(start, start + len(options[0]))}
    found = [0] * len(network.constants)
    for layer in network.layers:
        if isinstance(layer, networks.Embedding):
            found += [at.get(p, 0) for p in layer.positions for _ in range(layer.width)]
        elif isinstance(layer, networks.Affine):
            lists = [reduce(or_, {found[i] for i in elements}, 0) for elements in layer.lists]
            found += [lists[of] for of, _ in layer.pairs]
        elif isinstance(layer, networks.Product):
            found += [found[i] | found[j] for i, j in zip(layer.firsts, layer.seconds, strict=True)]
        elif isinstance(layer, networks.Maximum):
            windows = [layer.sources[window.start : window.stop] for window in layer.windows]
            found += [reduce(or_, [found[i] for i in window]) for window in windows]
        else:
            found += [found[i] for i in networks.sources_of(layer)]
    return found


def read_by(layer: networks.Layer, places: Sequence[int]) -> set[int]:
    """The elements that those in some places of a layer are computed from, at once."""
    if isinstance(layer, networks.Affine):
        return {i for at in {layer.pairs[place][0] for place in places} for i in layer.lists[at]}
    if isinstance(layer, networks.Product):
        return {each[place] for each in (layer.firsts, layer.seconds) for place in places}
    if isinstance(layer, networks.Maximum):
        return {layer.sources[at] for place in places for at in layer.windows[place]}
    if isinstance(layer, networks.Rectifier | networks.Curve):
        return {layer.sources[place] for place in places}
    return set()


def is_exp(layer: networks.Layer) -> bool:
    return isinstance(layer, networks.Curve) and layer.function == EXP


class Blocks:
    """All that the logits of a network are computed from, cut into blocks, each after those that it reads.

    `block_of` an element is the number of its block; the `ends` are the blocks of logits and of what margins read;
    `unlimited` are the elements that a curve exp reads. `firm` are the logits and what is read by other layers than
    maxima, curves exp and affine elements that are not firm.
    """

    def __init__(self, network: networks.Network, words: Sequence[tuple[int, Sequence[Any]]]) -> None:
        self.network = network
        self.found: list[Block] = []
        self.block_of = [-1] * len(network.owner)
        needed = bytearray(len(network.owner))
        for i in network.logits:
            needed[i] = 1
        self.firm = needed[:]
        for layer in reversed(network.later):
            here = [place for place in range(layer.size) if needed[layer.start + place]]
            read = read_by(layer, here)
            for i in read:
                needed[i] = 1
            if isinstance(layer, networks.Affine):
                read = read_by(layer, [place for place in here if self.firm[layer.start + place]])
            if not (isinstance(layer, networks.Maximum) or is_exp(layer)):
                for i in read:
                    self.firm[i] = 1
        masks, step = words_of_elements(network, words), count()

        def alike(i: int) -> tuple[int, ...]:
            """Elements that follow each other and have the same are in one block."""
            order = 0 if network.owner[i].depth else i - next(step)
            return order, network.owner[i].start, masks[i], needed[i]

        later = [range(layer.start, layer.start + layer.size) for layer in network.later]
        groups = [groupby(each, alike) for each in (network.cut, *later)]
        for elements in [[*group] for each in groups for _, group in each]:
            start, stop = elements[0], elements[-1] + 1
            if needed[start]:
                self.block_of[start:stop] = [len(self.found)] * len(elements)
                self.found.append(Block(len(self.found), network.owner[start], start, stop, masks[start]))
        for block in self.found:
            if block.layer.depth:
                elements_read = read_by(
                    block.layer, range(block.start - block.layer.start, block.stop - block.layer.start)
                )
                block.sources = sorted({self.block_of[i] for i in elements_read})
            for number in block.sources:
                self.found[number].outside |= self.found[number].words != block.words
                self.found[number].summed |= isinstance(block.layer, networks.Affine)
        ends, functions = {*network.logits}, [*network.logits]
        while functions:
            layer = network.owner[functions[-1]]
            place = functions.pop() - layer.start
            new = read_by(layer, [place]) - ends if layer.depth and isinstance(layer, networks.Affine) else set()
            ends |= new
            functions += new
        self.ends = sorted({self.block_of[i] for i in ends})
        exps = [layer for layer in network.later if is_exp(layer)]
        self.unlimited = {i for layer in exps for i in read_by(layer, range(layer.size))}
