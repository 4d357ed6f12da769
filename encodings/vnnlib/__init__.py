"""VNN-LIB queries, read and written."""
