"""The texts of a run as jobs: which are left to do, in which order, and the processes that do them."""
