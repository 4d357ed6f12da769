"""The exit codes of every command: scripts rely on them."""

HOLDS = 0
"""All required properties hold."""
VIOLATED = 1
"""A required property is violated."""
USAGE = 2
"""Usage, or bad input."""
INCOMPLETE = 3
"""Something is open, or nothing was claimed."""
UNCHECKED = 4
"""An answer did not check."""
BUG = 70
"""An error of ours; its traceback is shown."""
INTERRUPTED = 130
CLOSED_PIPE = 141
"""What shells call a program that a closed pipe ended: nobody reads the answer any more."""
