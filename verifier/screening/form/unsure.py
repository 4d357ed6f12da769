"""What screening says when it cannot say yes."""


class Unsure(Exception):
    """Not accepted in float64: the exact checker has the word. The message says why, for whoever measures."""
