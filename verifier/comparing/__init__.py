"""Several runs of the same texts and swaps beside each other: paired differences, and who moved."""
