"""Questions as mixed-integer linear programs, and the exact parts of proofs about them."""
