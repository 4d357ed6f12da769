"""Outside solvers, each in a process of its own."""
