"""The safe radius: how far the vectors of words may move before the class changes, from both sides, with evidence."""
