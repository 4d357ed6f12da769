"""Commands that decide between runs, or about swaps."""
