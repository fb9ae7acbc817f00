"""What sizing answers, as members of JSON."""
