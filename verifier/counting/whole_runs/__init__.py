"""Robust fractions of a whole data set: what is asked, of which model, and what is said of all texts together."""
