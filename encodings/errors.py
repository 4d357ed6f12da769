"""What the mathematics refuses, each error also being the built-in error it really is.

    Unsupported  (NotImplementedError)  the input is well formed, and beyond what is implemented
    BadInput     (ValueError)           the input is not what it should be
    Disagreement (ArithmeticError)      two evaluations that must agree do not
    OutOfTime    (TimeoutError)         reading took longer than there was

A message says what was met, where, and what would work.
"""


class Unsupported(NotImplementedError):
    """Well formed, and beyond what is implemented."""


class BadInput(ValueError):
    """Not what it should be."""


class OutOfTime(TimeoutError):
    """Not read in the time there was."""


class Disagreement(ArithmeticError):
    """The deployed model answers otherwise than the network it was read as, by more than rounding."""
