"""Architectures of text classifiers: one file each, listed in `architecture_table.py`."""
