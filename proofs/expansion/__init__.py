"""The leaf `expansion` of smooth networks: margins expanded at one sentence, and what that loses elsewhere."""

from . import expansion_leaf

__all__ = ["expansion_leaf"]
