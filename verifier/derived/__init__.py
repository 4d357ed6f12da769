"""Networks that are made of a deployed model, and read instead of it."""
