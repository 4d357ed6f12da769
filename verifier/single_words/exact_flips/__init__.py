"""Every flip of a network that was read, exactly, by bounds of many words at once."""
