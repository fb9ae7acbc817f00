"""A published count, taken apart into named differences."""
