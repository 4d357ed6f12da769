"""What a run says of itself, beside what its evidence says; and runs handed over."""
