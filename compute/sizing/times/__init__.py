"""Devices, and the times that operators take on them at least."""
