"""What the engines write: statements and proof trees as plain data, and the bytes of FORMAT.md; not trusted."""
