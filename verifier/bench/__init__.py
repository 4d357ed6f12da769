"""Engines beside outside solvers: who they are, what they answered, and at what cost."""
