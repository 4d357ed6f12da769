"""Synonyms: where they come from, which are kept, and the frozen spaces they give."""
