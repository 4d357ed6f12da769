"""Points, words and sentences at which the class changes: the high ends of radii."""
