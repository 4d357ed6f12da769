"""How many sentences of a swap space keep a text's label: counted by cells, bracketed, or sampled."""
