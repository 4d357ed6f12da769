"""EUBA: flips estimated from gradients, for any model."""
