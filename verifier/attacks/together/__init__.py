"""Searches over many texts at once, where a network is read: the same decisions and counts as text by text."""
