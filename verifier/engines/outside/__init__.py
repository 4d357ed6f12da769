"""Solvers of others as engines: what they find is replayed, what they rule out is a claim."""
