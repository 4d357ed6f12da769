"""Ways to look for a sentence that reaches the goal, each a frozen value with one method, `run`."""
