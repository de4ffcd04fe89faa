"""For type checkers only. Written by scripts/build_stubs.py."""
