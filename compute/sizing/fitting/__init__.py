"""What fits into a memory: the longest context, the largest batch."""
