"""Proofs checked at speed: in float64 with error bounds, and where these decide nothing, by proofs/check.py.

form      what a certificate says: statement (bytes -> certificate), tree_leaves (bytes -> leaves), sentence_census
          (numbers of sentences), agreed_network (both readings write one network)
numbers   float64, every number with its error: kernels, moved_elements, linear_part, swap_moves (what swaps add to
          the cut), region_extremes, ranked_swaps (selection of swaps), relaxed_lines, values_beyond_cut (relaxations
          with doubts, weights of errors), substituted_lines, margins, joint_groups (linear leaves), enumerated_leaves,
          float64_witness (one sentence); equal_elements (which numbers of a text are one number for certain)
maxima    maxima that count swaps: counted_lines (bounds from above), root_order, taken_roots (from below)
boxes     box certificates of VNN-LIB queries: box_nodes (bytes -> nodes), float_network (the checker's network in
          float64), float_regions, float_bounds, screened_tree (one case, its leaves mended where they do not hold)
screened_text                         one text: what swaps do to it, what is known to hold
screen, verdict, many_texts           one proof, one certificate, many texts at once
"""

from .form.statement import canonical
from .form.unsure import Unsure
from .verdict import Screen

__all__ = ["Screen", "Unsure", "canonical"]
