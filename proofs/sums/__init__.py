"""Rows of an affine layer, many at once, and functions of the words by what each option adds."""

from . import packed_columns, swap_gains, weighted_sums

__all__ = ["packed_columns", "swap_gains", "weighted_sums"]
