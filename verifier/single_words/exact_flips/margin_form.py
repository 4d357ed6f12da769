"""The margin of a network with one hidden layer, in the form that is bounded over boxes of words."""

from __future__ import annotations

import numpy as np

from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import shallow_margin
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.query import Query

from .word_box_bounds import Form


def shallow_form(query: Query, rival: int) -> Form:
    """`shallow_margin` read off at the unit vectors of the cut."""
    width = query.network.cut_width
    numbers = np.arange(width)
    units = Differences(query, numbers, numbers, np.zeros(width), np.eye(width))
    shallow = shallow_margin(Places(units, numbers[None]), rival)
    order = np.argsort(shallow.weights, kind="stable")
    columns = np.append(order, len(order))
    return Form(shallow.weights[order], shallow.rows[0][:, columns], float(shallow.base[-1]))
