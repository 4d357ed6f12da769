"""Regions of the sentences of a text, seen by a smooth network: evaluated, bounded by boxes, searched."""
