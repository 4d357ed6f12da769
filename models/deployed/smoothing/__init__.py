"""Classifiers that are the vote, or the mean, of a network over texts with random words."""
