"""Bounds of what a network can say over regions of sentences, and the selection of swaps behind them."""
