"""The run folder: its files, its inputs, and the work that fills it."""
