"""The pages of what was measured: one design, as of every run."""
