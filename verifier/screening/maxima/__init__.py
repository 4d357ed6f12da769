"""Maxima that count swaps: what bounds them besides constants, in float64, with its errors."""
