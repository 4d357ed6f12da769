"""Ball certificates (FORMAT.md, section 16): their checker, and who writes them."""
