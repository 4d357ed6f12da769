"""`paper`: one command for each of the five papers."""
