"""Certificates as VIPR: the program, its bounds and its proof."""
