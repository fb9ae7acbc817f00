"""What the weights alone say of heads: where each writes, what reads it, how heads compose.

Everything is computed in float64, whatever the weights' dtype, and no (d, d) or (V, V) matrix of a
head is ever made: a circuit stays the product of its two narrow factors.
"""
