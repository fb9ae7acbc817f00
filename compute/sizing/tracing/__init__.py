"""What a trace of this service takes: numbers, bytes, JSON."""
