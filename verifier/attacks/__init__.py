"""Attacks by word swaps: each is four values (goal, limits, transformation, search), and finds the high end only."""
