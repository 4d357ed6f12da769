"""The ladder: engines in their order, and what is believed of them."""
