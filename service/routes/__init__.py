"""The calls: each a declaration and three lines."""
