"""Questions as formulas over exact rationals, for SMT solvers."""
