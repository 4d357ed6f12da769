"""Smooth networks over regions of sentences: margins expanded at one sentence, and what that loses elsewhere."""
