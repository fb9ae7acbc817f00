"""Bytes: of weights, caches, activations, and of what training holds."""
