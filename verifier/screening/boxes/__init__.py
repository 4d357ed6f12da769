"""Box certificates (FORMAT.md, section 14) followed in float64, every number with its distance from the checker's."""
