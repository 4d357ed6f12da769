"""What models outside of this process answer, read as rows of scores."""
