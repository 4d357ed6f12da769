"""What this package refuses, each error also being the built-in error it really is.

    BadInput    (ValueError)            a certificate cannot be written from this
    Unsupported (NotImplementedError)   well formed, and beyond version 2 of the format
    Refused     (ValueError)            a certificate does not prove what it claims
    Unusable    (ValueError)            there is nothing to check: a missing file, a model outside the format

The last two belong to the checker, which imports nothing, and are named here so that nobody has to know that.
"""

from __future__ import annotations

from ..check import Refused, Unusable

__all__ = ["BadInput", "Refused", "Unsupported", "Unusable"]


class BadInput(ValueError):
    """Not what it should be."""


class Unsupported(NotImplementedError):
    """Well formed, and beyond version 2 of the format."""
