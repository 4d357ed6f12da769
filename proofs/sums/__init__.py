"""Sums of weights times numbers: rows of an affine layer, many at once."""

from . import packed_columns, weighted_sums

__all__ = ["packed_columns", "weighted_sums"]
