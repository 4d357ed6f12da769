"""Defences, one file each, listed in `defence_table.py`; and how much a swap matters to a trained network."""
