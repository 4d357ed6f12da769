"""Commands for work that is spread over many machines."""
