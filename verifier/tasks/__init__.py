"""What a task file says, and what it names, read and checked."""
