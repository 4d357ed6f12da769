"""The bound of the leaf `attention` (proofs/FORMAT.md, section 17) in float64, for many words and heads at once."""
