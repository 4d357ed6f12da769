"""Audits of single kinds of runs: of `attack`, and of the quantities of `measure`."""
