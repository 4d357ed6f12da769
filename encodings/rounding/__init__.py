"""How far evaluations in floating point can be from the reals."""
