"""What each command is called with: one function per command, which imports what it needs only when it runs."""
