"""What runs found, in the formats of other programs."""
