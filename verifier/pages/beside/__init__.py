"""What a page of `certify` shows beside the run: swaps left out, and what other runs of the same texts found."""
