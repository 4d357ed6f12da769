"""Radii of networks with products and curves: LSTM, attention, normalisation."""
