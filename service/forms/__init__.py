"""The forms of an answer: JSON with nested lists or base64, a safetensors body, JSON Lines.

Every form decodes to the same bits.
"""
