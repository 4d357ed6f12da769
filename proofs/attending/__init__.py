"""The leaf `attention` of smooth networks: trusted files beside check.py."""
