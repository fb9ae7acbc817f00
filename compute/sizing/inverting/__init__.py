"""Which sizes of a style hold, take or compute so much."""
