"""The arithmetic of screening: float64, every number with its error."""
