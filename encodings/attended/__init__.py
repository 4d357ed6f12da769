"""Networks of one layer of attention, evaluated by differences: what attention adds up is a sum over the swaps."""
