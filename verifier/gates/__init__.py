"""What must hold of a run: each requirement is answered true, false, or not settled."""
