"""Commands about defences."""
