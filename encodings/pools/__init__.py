"""Networks that take the greatest of many windows: what a swap moves is a few of them."""
