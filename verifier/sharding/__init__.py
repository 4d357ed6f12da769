"""A task in shards for many machines, and their runs put together."""
