"""Both ends of the radius of a set of words: what is found, what is proved, what is told of it."""
