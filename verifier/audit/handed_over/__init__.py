"""Runs handed over: the archive, its statement and signature, and what is compared without the model."""
